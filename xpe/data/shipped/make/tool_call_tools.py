# ruff: noqa: E501 - one tool a line
"""The tools of tool_call.json, one a line: name | description | arguments.

An argument is `name:type description`; `*` after the name says that it is required.
"""

from __future__ import annotations

from typing import Any

ZH = """
analyze_revenue_by_type | 按收入类型统计一段时间内的收入金额与占比 | start_date*:string 开始日期; end_date*:string 结束日期
analyze_revenue_trend | 查看收入随月份变化的趋势 | start_month*:string 开始月份; end_month*:string 结束月份
query_visitor_flow | 查询景区某天各入口的客流人数 | date*:string 日期; gate:string 入口名称
predict_visitor_flow | 预测景区未来几天的客流 | days*:integer 天数
query_ticket_inventory | 查询景区门票剩余库存 | date*:string 日期; ticket_type:string 票种
refund_ticket | 为门票订单办理退票 | order_id*:string 订单号; reason:string 退票原因
query_hotel_occupancy | 查询酒店客房入住率 | hotel*:string 酒店名称; date*:string 日期
book_hotel_room | 预订酒店客房 | hotel*:string 酒店名称; check_in*:string 入住日期; nights*:integer 入住晚数
list_hotel_complaints | 列出住客对酒店的投诉 | hotel*:string 酒店名称; limit:integer 条数
query_employee_leave | 查询员工剩余年假天数 | employee_id*:integer 工号
submit_leave_request | 提交员工请假申请 | employee_id*:integer 工号; start_date*:string 开始日期; days*:integer 请假天数
query_attendance_record | 查询员工考勤打卡记录 | employee_id*:integer 工号; month*:string 月份
query_payroll | 查询员工某月工资明细 | employee_id*:integer 工号; month*:string 月份
track_parcel | 查询快递包裹的物流轨迹 | tracking_number*:string 运单号
estimate_shipping_fee | 估算快递运费 | origin*:string 始发城市; destination*:string 目的城市; weight_kg*:number 重量（千克）
list_warehouse_stock | 查询仓库商品库存数量 | sku*:string 商品编码; warehouse:string 仓库
create_purchase_order | 创建向供应商采购的订单 | sku*:string 商品编码; quantity*:integer 数量; supplier:string 供应商
query_supplier_rating | 查询供应商的信用评级 | supplier*:string 供应商名称
query_invoice_status | 查询发票开具状态 | invoice_number*:string 发票号码
issue_invoice | 为订单开具增值税发票 | order_id*:string 订单号; title*:string 发票抬头; amount*:number 金额
query_budget_usage | 查询部门预算执行情况 | department*:string 部门; year*:integer 年度
get_weather_forecast | 查询城市未来几天的天气预报 | city*:string 城市; days:integer 天数
get_air_quality | 查询城市空气质量指数 | city*:string 城市
search_train_tickets | 查询两地之间的火车票和高铁票 | from_city*:string 出发城市; to_city*:string 到达城市; date*:string 日期
plan_driving_route | 规划驾车路线并估计时间 | origin*:string 起点; destination*:string 终点
lookup_herb | 查询中药材的性味归经与功效 | herb*:string 药材名称
check_herb_conflict | 检查两味中药是否有配伍禁忌 | herb_a*:string 药材甲; herb_b*:string 药材乙
book_clinic_appointment | 预约门诊挂号 | department*:string 科室; date*:string 日期; doctor:string 医生
query_lab_report | 查询患者的化验检查报告 | patient_id*:integer 病历号; item:string 检查项目
query_exam_scores | 查询学生考试成绩 | student_id*:integer 学号; term*:string 学期
search_library_books | 在图书馆检索馆藏图书 | keyword*:string 关键词; limit:integer 条数
renew_library_book | 续借图书馆的图书 | card_id*:string 借书证号; book_id*:string 图书编号
query_power_usage | 查询用户每月用电量 | meter_id*:string 电表编号; month*:string 月份
report_repair | 提交设备报修工单 | location*:string 地点; problem*:string 故障描述
"""

EN = """
get_stock_quote | Latest price of a stock by its ticker symbol | ticker*:string ticker symbol
get_price_history | Daily closing prices of a stock over a period | ticker*:string ticker symbol; start*:string first day; end*:string last day
convert_currency | Convert an amount of money between currencies | amount*:number amount; source*:string currency code; target*:string currency code
calculate_loan_payment | Monthly payment of a loan or mortgage | principal*:number amount borrowed; annual_rate*:number percent a year; years*:integer term in years
list_transactions | Recent transactions of a bank account | account_id*:string account; limit:integer how many
transfer_money | Transfer money from one bank account to another | source*:string account; target*:string account; amount*:number amount
search_flights | Search for flights between two airports on a day | origin*:string airport code; destination*:string airport code; date*:string day
get_flight_status | Whether a flight is delayed, cancelled or on time | flight_number*:string flight; date:string day
cancel_booking | Cancel a travel booking and refund it | booking_id*:string booking
find_restaurants | Find restaurants near a place by cuisine | place*:string where; cuisine:string kind of food; limit:integer how many
reserve_table | Reserve a table in a restaurant | restaurant*:string name; time*:string date and time; guests*:integer number of guests
get_recipe | Cooking recipe of a dish with its ingredients | dish*:string name of the dish; servings:integer number of servings
get_nutrition_facts | Calories and nutrients of a food | food*:string food; grams:number weight
create_calendar_event | Put a meeting or event into the calendar | title*:string title; start*:string start; duration_minutes*:integer minutes
list_calendar_events | Meetings and events of a day in the calendar | date*:string day
set_reminder | Set a reminder for a task at a time | text*:string what; time*:string when
send_email | Send an email message to a person | to*:string address; subject*:string subject; body*:string text
search_emails | Search the mailbox for messages | query*:string words; sender:string address
translate_text | Translate a text into another language | text*:string text; target_language*:string language
summarize_document | Summarize a document at an address | url*:string address; sentences:integer length
search_papers | Search for scientific papers on a topic | topic*:string topic; since_year:integer first year
get_citations | Number of citations of a scientific paper by its DOI | doi*:string DOI
create_issue | Open an issue in the bug tracker of a project | project*:string project; title*:string title; severity:string severity
list_open_issues | Open issues and bugs of a project | project*:string project; label:string label
restart_service | Restart a service on a server | service*:string service; host*:string server
get_server_metrics | Processor and memory load of a server | host*:string server; minutes:integer period
query_sales_by_region | Sales figures by region and quarter | region*:string region; quarter*:string quarter
get_customer_profile | Profile and contact data of a customer | customer_id*:integer customer
open_support_ticket | Open a support ticket for a customer | customer_id*:integer customer; problem*:string what is wrong; priority:string priority
track_order | Where an order is and when it arrives | order_id*:string order
list_patient_medications | Medications that a patient takes | patient_id*:integer patient
check_drug_interaction | Check two drugs for interactions | drug_a*:string drug; drug_b*:string drug
get_sports_scores | Results of a sports team's games | team*:string team; season:string season
get_movie_showtimes | When a movie is shown in the cinemas of a city | movie*:string movie; city*:string city
"""

RETRIEVAL = {
    "zh": "retrieval_tool | 根据查询语句检索可用的工具 | query*:string 查询语句; "
    "source_filter:string 检索范围; user_id:integer 用户编号; top_k:integer 返回条数",
    "en": "retrieval_tool | Find the tools that fit a query | query*:string query; "
    "source_filter:string where to search; user_id:integer user; top_k:integer how many",
}


def catalogue(table: str) -> dict[str, dict[str, Any]]:
    """Return the tools of a table by name, as the chat APIs define them."""
    return {tool["name"]: tool for tool in map(_tool, table.strip().splitlines())}


def _tool(line: str) -> dict[str, Any]:
    name, description, arguments = (part.strip() for part in line.split(" | "))
    properties, required = {}, []
    for argument in arguments.split("; "):
        head, _, said = argument.partition(" ")
        key, _, kind = head.partition(":")
        if key.endswith("*"):
            required.append(key[:-1])
        properties[key.removesuffix("*")] = {"type": kind, "description": said}
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "parameters": parameters}
