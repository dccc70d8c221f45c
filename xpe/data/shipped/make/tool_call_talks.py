# ruff: noqa: E501 - one step of a conversation a line
"""What is said in tool_call.json: steps of conversations, by language.

SEARCHED: question, query, tool, arguments, result, answer; the tool is found by retrieval first.
DIRECT: question, tools on offer, calls made at once, results, answer. CHAINED: question, tools,
two steps of (call, result), answer. TALK: question, answer, no tool.
"""

from __future__ import annotations

# fmt: off

SEARCHED = {
    "zh": [
        (
            "帮我看下2025年6月到8月各种收入类型的占比情况",
            "按收入类型分析收入占比",
            "analyze_revenue_by_type",
            {"start_date": "2025-06-01", "end_date": "2025-08-31"},
            {"总收入": "1,285,893.00", "门票": "47.1%", "交通": "50.6%", "其他": "2.3%"},
            "2025年6月到8月总收入为1,285,893.00元，其中交通占50.6%，门票占47.1%，其他占2.3%。",
        ),
        ("国庆节那天西门进了多少人？", "查询景区某天入口客流人数", "query_visitor_flow", {"date": "2025-10-01", "gate": "西门"}, {"date": "2025-10-01", "gate": "西门", "visitors": 8421}, "2025年10月1日西门入园8421人。"),
        ("明天成人票还剩多少张？今天是2025年5月2日。", "查询门票剩余库存", "query_ticket_inventory", {"date": "2025-05-03", "ticket_type": "成人票"}, {"date": "2025-05-03", "成人票": 312}, "2025年5月3日的成人票还剩312张。"),
        ("订单T20250718看错日期了，帮我退票", "门票订单退票", "refund_ticket", {"order_id": "T20250718", "reason": "看错日期"}, {"status": "已受理", "refund": 120.0, "days": 3}, "订单T20250718的退票已受理，120元将在3天内退回。"),
        ("云溪酒店本周六的入住率是多少？本周六是2025年7月19日", "查询酒店客房入住率", "query_hotel_occupancy", {"hotel": "云溪酒店", "date": "2025-07-19"}, {"hotel": "云溪酒店", "occupancy": 0.93}, "云溪酒店2025年7月19日的入住率为93%。"),
        ("工号10327还有几天年假？", "查询员工剩余年假", "query_employee_leave", {"employee_id": 10327}, {"employee_id": 10327, "annual_leave_left": 6.5}, "工号10327的员工还剩6.5天年假。"),
        ("查一下工号10327三月份的打卡记录，2025年", "查询员工考勤打卡", "query_attendance_record", {"employee_id": 10327, "month": "2025-03"}, {"late": 1, "absent": 0, "normal": 20}, "工号10327在2025年3月正常打卡20天，迟到1次，没有缺勤。"),
        ("运单SF1088231到哪里了", "查询快递物流轨迹", "track_parcel", {"tracking_number": "SF1088231"}, {"status": "运输中", "place": "武汉转运中心", "eta": "2025-06-12"}, "运单SF1088231正在运输，现在武汉转运中心，预计2025年6月12日送达。"),
        ("从成都寄3.5公斤的东西到哈尔滨要多少运费？", "估算快递运费", "estimate_shipping_fee", {"origin": "成都", "destination": "哈尔滨", "weight_kg": 3.5}, {"fee": 41.0, "currency": "CNY"}, "从成都寄3.5公斤到哈尔滨，运费约41元。"),
        ("发票号码04412288开好了没有", "查询发票开具状态", "query_invoice_status", {"invoice_number": "04412288"}, {"status": "已开具", "date": "2025-04-09"}, "发票04412288已于2025年4月9日开具。"),
        ("市场部2025年的预算用了多少？", "查询部门预算执行情况", "query_budget_usage", {"department": "市场部", "year": 2025}, {"budget": 2000000, "used": 1380000}, "市场部2025年预算200万元，已用138万元，占69%。"),
        ("青岛未来三天会下雨吗？", "查询城市天气预报", "get_weather_forecast", {"city": "青岛", "days": 3}, {"forecast": ["晴", "小雨", "多云"]}, "青岛未来三天依次是晴、小雨、多云，第二天会下雨。"),
        ("八月六号从杭州到南京有哪些高铁？2025年", "查询高铁火车票", "search_train_tickets", {"from_city": "杭州", "to_city": "南京", "date": "2025-08-06"}, [{"train": "G7372", "depart": "08:12"}, {"train": "G1846", "depart": "09:40"}], "2025年8月6日从杭州到南京有G7372（08:12发车）和G1846（09:40发车）。"),
        ("甘草和甘遂能一起用吗", "检查中药配伍禁忌", "check_herb_conflict", {"herb_a": "甘草", "herb_b": "甘遂"}, {"conflict": True, "rule": "十八反"}, "不能同用：甘草反甘遂，属于十八反。"),
        ("想挂9月3日上午骨科赵医生的号，2025年", "预约门诊挂号", "book_clinic_appointment", {"department": "骨科", "date": "2025-09-03", "doctor": "赵医生"}, {"booked": True, "time": "09:30", "number": 14}, "已挂到2025年9月3日骨科赵医生的号，第14号，09:30就诊。"),
        ("三号楼二层的打印机卡纸了，帮我报修", "提交设备报修工单", "report_repair", {"location": "三号楼二层", "problem": "打印机卡纸"}, {"ticket": "R-5521", "eta": "今天17:00前"}, "已提交报修工单R-5521，维修人员将在今天17:00前到达。"),
    ],
    "en": [
        ("What is NVDA trading at right now?", "latest stock price", "get_stock_quote", {"ticker": "NVDA"}, {"ticker": "NVDA", "price": 171.38, "currency": "USD"}, "NVDA is trading at 171.38 USD."),
        ("How much is 250 euros in yen?", "convert money between currencies", "convert_currency", {"amount": 250, "source": "EUR", "target": "JPY"}, {"result": 42815.0, "rate": 171.26}, "250 euros are 42,815 yen at a rate of 171.26."),
        ("I want to borrow 300,000 at 4.5% over 25 years. What would I pay a month?", "monthly payment of a loan", "calculate_loan_payment", {"principal": 300000, "annual_rate": 4.5, "years": 25}, {"monthly": 1667.5}, "You would pay 1,667.50 a month."),
        (
            "Show me the last 2 transactions of account AC-771.",
            "recent transactions of a bank account",
            "list_transactions",
            {"account_id": "AC-771", "limit": 2},
            [{"amount": -42.1, "to": "Grocer"}, {"amount": 1800.0, "from": "Salary"}],
            "The last two transactions of AC-771 are a payment of 42.10 to Grocer and 1,800.00 received as salary.",
        ),
        (
            "Which flights go from LHR to JFK on 14 May 2025?",
            "search flights between airports",
            "search_flights",
            {"origin": "LHR", "destination": "JFK", "date": "2025-05-14"},
            [{"flight": "BA117", "departs": "08:25"}, {"flight": "VS3", "departs": "09:40"}],
            "On 14 May 2025 BA117 leaves LHR for JFK at 08:25 and VS3 at 09:40.",
        ),
        ("Is LH400 late today?", "flight delayed or on time", "get_flight_status", {"flight_number": "LH400"}, {"status": "delayed", "minutes": 35}, "Yes, LH400 is delayed by 35 minutes."),
        (
            "Book us a table for 4 at Osteria Lina, 2 June 2025 at 19:30.",
            "reserve a table in a restaurant",
            "reserve_table",
            {"restaurant": "Osteria Lina", "time": "2025-06-02 19:30", "guests": 4},
            {"confirmed": True, "code": "OL-88"},
            "Your table for 4 at Osteria Lina on 2 June 2025 at 19:30 is confirmed; the code is OL-88.",
        ),
        ("How do I cook shakshuka for three?", "cooking recipe of a dish", "get_recipe", {"dish": "shakshuka", "servings": 3}, {"ingredients": ["6 eggs", "800 g tomatoes", "1 onion"], "minutes": 30}, "For three servings of shakshuka take 6 eggs, 800 g tomatoes and 1 onion; it takes 30 minutes."),
        ("Put a 45 minute review titled Budget into my calendar, 3 March 2025, 10:00.", "create calendar event", "create_calendar_event", {"title": "Budget", "start": "2025-03-03 10:00", "duration_minutes": 45}, {"created": True}, "The 45 minute event Budget is in your calendar for 3 March 2025 at 10:00."),
        (
            "Find papers on protein folding since 2021.",
            "search scientific papers on a topic",
            "search_papers",
            {"topic": "protein folding", "since_year": 2021},
            [{"title": "Highly accurate protein structure prediction", "year": 2021}],
            "One paper on protein folding since 2021: Highly accurate protein structure prediction (2021).",
        ),
        ("How often has 10.1038/s41586-021-03819-2 been cited?", "number of citations of a paper", "get_citations", {"doi": "10.1038/s41586-021-03819-2"}, {"citations": 31250}, "The paper with DOI 10.1038/s41586-021-03819-2 has been cited 31,250 times."),
        ("What is the load of host db-04 over the last 15 minutes?", "processor and memory load of a server", "get_server_metrics", {"host": "db-04", "minutes": 15}, {"cpu": 0.82, "memory": 0.64}, "Over the last 15 minutes db-04 ran at 82% processor and 64% memory load."),
        ("Sales in the Nordics for 2025-Q2, please.", "sales figures by region", "query_sales_by_region", {"region": "Nordics", "quarter": "2025-Q2"}, {"sales": 4.7, "unit": "million EUR"}, "Sales in the Nordics were 4.7 million EUR in 2025-Q2."),
        ("Where is order 99-1204 and when will it arrive?", "where is an order", "track_order", {"order_id": "99-1204"}, {"place": "Lyon hub", "arrives": "2025-02-11"}, "Order 99-1204 is at the Lyon hub and arrives on 11 February 2025."),
        ("Can warfarin be taken with ibuprofen?", "check drugs for interactions", "check_drug_interaction", {"drug_a": "warfarin", "drug_b": "ibuprofen"}, {"severity": "major", "effect": "bleeding"}, "They should not be combined: the interaction is major and raises the risk of bleeding."),
        ("When is Solaris on in Prague?", "movie showtimes in cinemas", "get_movie_showtimes", {"movie": "Solaris", "city": "Prague"}, [{"cinema": "Aero", "time": "20:15"}], "Solaris is shown in Prague at Aero, 20:15."),
    ],
}

DIRECT = {
    "zh": [
        ("北京现在的空气质量怎么样？", ["get_air_quality", "get_weather_forecast"], [("get_air_quality", {"city": "北京"})], [{"city": "北京", "aqi": 58, "level": "良"}], "北京现在的空气质量指数是58，等级为良。"),
        ("给订单D3391开发票，抬头是远山贸易有限公司，金额5600元", ["issue_invoice", "query_invoice_status"], [("issue_invoice", {"order_id": "D3391", "title": "远山贸易有限公司", "amount": 5600})], [{"invoice_number": "05120077"}], "已为订单D3391开具发票，号码05120077，抬头远山贸易有限公司，金额5600元。"),
        ("黄芪有什么功效", ["lookup_herb", "check_herb_conflict"], [("lookup_herb", {"herb": "黄芪"})], [{"性味": "甘，微温", "归经": "脾、肺", "功效": "补气升阳，固表止汗"}], "黄芪性味甘、微温，归脾、肺经，功效是补气升阳、固表止汗。"),
        ("比较一下上海和广州的空气质量", ["get_air_quality"], [("get_air_quality", {"city": "上海"}), ("get_air_quality", {"city": "广州"})], [{"city": "上海", "aqi": 71}, {"city": "广州", "aqi": 49}], "上海的空气质量指数是71，广州是49，广州更好。"),
        ("图书馆有没有关于量子计算的书？列三本", ["search_library_books", "renew_library_book"], [("search_library_books", {"keyword": "量子计算", "limit": 3})], [["量子计算导论", "量子信息基础", "量子算法"]], "有三本：《量子计算导论》《量子信息基础》《量子算法》。"),
        ("SKU A-17和B-02各有多少库存？", ["list_warehouse_stock", "create_purchase_order"], [("list_warehouse_stock", {"sku": "A-17"}), ("list_warehouse_stock", {"sku": "B-02"})], [{"sku": "A-17", "stock": 130}, {"sku": "B-02", "stock": 0}], "A-17有130件，B-02已无库存。"),
    ],
    "en": [
        ("Remind me to water the plants at 18:00.", ["set_reminder", "create_calendar_event"], [("set_reminder", {"text": "water the plants", "time": "18:00"})], [{"set": True}], "I will remind you to water the plants at 18:00."),
        (
            "Translate 'good morning' into Finnish and into Polish.",
            ["translate_text"],
            [("translate_text", {"text": "good morning", "target_language": "Finnish"}), ("translate_text", {"text": "good morning", "target_language": "Polish"})],
            [{"text": "hyvää huomenta"}, {"text": "dzień dobry"}],
            "Good morning is 'hyvää huomenta' in Finnish and 'dzień dobry' in Polish.",
        ),
        ("Open a critical issue in project apollo: login loops forever.", ["create_issue", "list_open_issues"], [("create_issue", {"project": "apollo", "title": "login loops forever", "severity": "critical"})], [{"id": 482}], "Issue 482, login loops forever, is open in apollo with severity critical."),
        ("What are the calories in 150 g of tofu?", ["get_nutrition_facts", "get_recipe"], [("get_nutrition_facts", {"food": "tofu", "grams": 150})], [{"kcal": 216, "protein_g": 23.6}], "150 g of tofu have 216 kcal and 23.6 g of protein."),
        ("Prices of AAPL and MSFT?", ["get_stock_quote", "get_price_history"], [("get_stock_quote", {"ticker": "AAPL"}), ("get_stock_quote", {"ticker": "MSFT"})], [{"price": 229.35}, {"price": 512.57}], "AAPL is at 229.35 and MSFT at 512.57."),
        ("Restart nginx on web-2.", ["restart_service", "get_server_metrics"], [("restart_service", {"service": "nginx", "host": "web-2"})], [{"status": "running"}], "nginx on web-2 was restarted and is running."),
    ],
}

CHAINED = {
    "zh": [
        (
            "查一下供应商恒泰的评级，如果是A就向它订200件C-9",
            ["query_supplier_rating", "create_purchase_order"],
            [("query_supplier_rating", {"supplier": "恒泰"}, {"supplier": "恒泰", "rating": "A"}), ("create_purchase_order", {"sku": "C-9", "quantity": 200, "supplier": "恒泰"}, {"order": "PO-7781"})],
            "恒泰的评级是A，已向它下单200件C-9，采购单号PO-7781。",
        )
    ],
    "en": [
        (
            "Look up customer 5512 and open a high priority ticket for a broken screen.",
            ["get_customer_profile", "open_support_ticket"],
            [("get_customer_profile", {"customer_id": 5512}, {"name": "Ada Moore", "plan": "pro"}), ("open_support_ticket", {"customer_id": 5512, "problem": "broken screen", "priority": "high"}, {"ticket": 90017})],
            "Ada Moore (5512, plan pro) now has the high priority ticket 90017 for a broken screen.",
        )
    ],
}

TALK = {"zh": [("你好，你能做什么？", "你好！我可以调用工具帮你查询数据、预订和办理业务，请告诉我你的需求。")], "en": [("Thanks, that was all.", "You are welcome. Have a good day!")]}
