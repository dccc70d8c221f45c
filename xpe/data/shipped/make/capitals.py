"""Write capitals_en.jsonl and capitals_zh.jsonl from one table of facts.

Usage: python capitals.py [FOLDER]    (default: the folder above this script)
"""

import json
import random
import sys
from pathlib import Path

SEED = 20250101
CHOICES = 4

# Region in brackets, then one country a line: country, capital, 国家, 首都.
FACTS = """
[Western Europe]
France | Paris | 法国 | 巴黎
Germany | Berlin | 德国 | 柏林
Netherlands | Amsterdam | 荷兰 | 阿姆斯特丹
Belgium | Brussels | 比利时 | 布鲁塞尔
Austria | Vienna | 奥地利 | 维也纳
Switzerland | Bern | 瑞士 | 伯尔尼
Liechtenstein | Vaduz | 列支敦士登 | 瓦杜兹
United Kingdom | London | 英国 | 伦敦
Ireland | Dublin | 爱尔兰 | 都柏林
[Northern Europe]
Sweden | Stockholm | 瑞典 | 斯德哥尔摩
Norway | Oslo | 挪威 | 奥斯陆
Denmark | Copenhagen | 丹麦 | 哥本哈根
Finland | Helsinki | 芬兰 | 赫尔辛基
Iceland | Reykjavík | 冰岛 | 雷克雅未克
Estonia | Tallinn | 爱沙尼亚 | 塔林
Latvia | Riga | 拉脱维亚 | 里加
Lithuania | Vilnius | 立陶宛 | 维尔纽斯
[Southern Europe]
Spain | Madrid | 西班牙 | 马德里
Portugal | Lisbon | 葡萄牙 | 里斯本
Italy | Rome | 意大利 | 罗马
Greece | Athens | 希腊 | 雅典
Malta | Valletta | 马耳他 | 瓦莱塔
Cyprus | Nicosia | 塞浦路斯 | 尼科西亚
Albania | Tirana | 阿尔巴尼亚 | 地拉那
Croatia | Zagreb | 克罗地亚 | 萨格勒布
Slovenia | Ljubljana | 斯洛文尼亚 | 卢布尔雅那
Bosnia and Herzegovina | Sarajevo | 波斯尼亚和黑塞哥维那 | 萨拉热窝
Serbia | Belgrade | 塞尔维亚 | 贝尔格莱德
Montenegro | Podgorica | 黑山 | 波德戈里察
North Macedonia | Skopje | 北马其顿 | 斯科普里
[Eastern Europe]
Russia | Moscow | 俄罗斯 | 莫斯科
Ukraine | Kyiv | 乌克兰 | 基辅
Belarus | Minsk | 白俄罗斯 | 明斯克
Moldova | Chișinău | 摩尔多瓦 | 基希讷乌
Poland | Warsaw | 波兰 | 华沙
Czechia | Prague | 捷克 | 布拉格
Slovakia | Bratislava | 斯洛伐克 | 布拉迪斯拉发
Hungary | Budapest | 匈牙利 | 布达佩斯
Romania | Bucharest | 罗马尼亚 | 布加勒斯特
Bulgaria | Sofia | 保加利亚 | 索非亚
[Caucasus and Central Asia]
Georgia | Tbilisi | 格鲁吉亚 | 第比利斯
Armenia | Yerevan | 亚美尼亚 | 埃里温
Azerbaijan | Baku | 阿塞拜疆 | 巴库
Kazakhstan | Astana | 哈萨克斯坦 | 阿斯塔纳
Uzbekistan | Tashkent | 乌兹别克斯坦 | 塔什干
Turkmenistan | Ashgabat | 土库曼斯坦 | 阿什哈巴德
Kyrgyzstan | Bishkek | 吉尔吉斯斯坦 | 比什凯克
Tajikistan | Dushanbe | 塔吉克斯坦 | 杜尚别
[Middle East]
Turkey | Ankara | 土耳其 | 安卡拉
Syria | Damascus | 叙利亚 | 大马士革
Lebanon | Beirut | 黎巴嫩 | 贝鲁特
Jordan | Amman | 约旦 | 安曼
Iraq | Baghdad | 伊拉克 | 巴格达
Iran | Tehran | 伊朗 | 德黑兰
Saudi Arabia | Riyadh | 沙特阿拉伯 | 利雅得
United Arab Emirates | Abu Dhabi | 阿拉伯联合酋长国 | 阿布扎比
Qatar | Doha | 卡塔尔 | 多哈
Bahrain | Manama | 巴林 | 麦纳麦
Oman | Muscat | 阿曼 | 马斯喀特
[South Asia]
India | New Delhi | 印度 | 新德里
Pakistan | Islamabad | 巴基斯坦 | 伊斯兰堡
Bangladesh | Dhaka | 孟加拉国 | 达卡
Nepal | Kathmandu | 尼泊尔 | 加德满都
Bhutan | Thimphu | 不丹 | 廷布
Maldives | Malé | 马尔代夫 | 马累
Afghanistan | Kabul | 阿富汗 | 喀布尔
[Southeast Asia]
Thailand | Bangkok | 泰国 | 曼谷
Vietnam | Hanoi | 越南 | 河内
Laos | Vientiane | 老挝 | 万象
Cambodia | Phnom Penh | 柬埔寨 | 金边
Myanmar | Naypyidaw | 缅甸 | 内比都
Malaysia | Kuala Lumpur | 马来西亚 | 吉隆坡
Indonesia | Jakarta | 印度尼西亚 | 雅加达
Philippines | Manila | 菲律宾 | 马尼拉
Brunei | Bandar Seri Begawan | 文莱 | 斯里巴加湾市
Timor-Leste | Dili | 东帝汶 | 帝力
[East Asia]
China | Beijing | 中国 | 北京
Japan | Tokyo | 日本 | 东京
South Korea | Seoul | 韩国 | 首尔
North Korea | Pyongyang | 朝鲜 | 平壤
Mongolia | Ulaanbaatar | 蒙古国 | 乌兰巴托
[North Africa]
Egypt | Cairo | 埃及 | 开罗
Libya | Tripoli | 利比亚 | 的黎波里
Algeria | Algiers | 阿尔及利亚 | 阿尔及尔
Morocco | Rabat | 摩洛哥 | 拉巴特
Sudan | Khartoum | 苏丹 | 喀土穆
Mauritania | Nouakchott | 毛里塔尼亚 | 努瓦克肖特
[West Africa]
Senegal | Dakar | 塞内加尔 | 达喀尔
Gambia | Banjul | 冈比亚 | 班珠尔
Guinea | Conakry | 几内亚 | 科纳克里
Sierra Leone | Freetown | 塞拉利昂 | 弗里敦
Liberia | Monrovia | 利比里亚 | 蒙罗维亚
Ghana | Accra | 加纳 | 阿克拉
Togo | Lomé | 多哥 | 洛美
Nigeria | Abuja | 尼日利亚 | 阿布贾
Niger | Niamey | 尼日尔 | 尼亚美
Mali | Bamako | 马里 | 巴马科
Burkina Faso | Ouagadougou | 布基纳法索 | 瓦加杜古
Cape Verde | Praia | 佛得角 | 普拉亚
[Central Africa]
Chad | N'Djamena | 乍得 | 恩贾梅纳
Cameroon | Yaoundé | 喀麦隆 | 雅温得
Central African Republic | Bangui | 中非共和国 | 班吉
Gabon | Libreville | 加蓬 | 利伯维尔
Republic of the Congo | Brazzaville | 刚果共和国 | 布拉柴维尔
Democratic Republic of the Congo | Kinshasa | 刚果民主共和国 | 金沙萨
Angola | Luanda | 安哥拉 | 罗安达
[East Africa]
Ethiopia | Addis Ababa | 埃塞俄比亚 | 亚的斯亚贝巴
Eritrea | Asmara | 厄立特里亚 | 阿斯马拉
Somalia | Mogadishu | 索马里 | 摩加迪沙
Kenya | Nairobi | 肯尼亚 | 内罗毕
Uganda | Kampala | 乌干达 | 坎帕拉
Rwanda | Kigali | 卢旺达 | 基加利
Burundi | Gitega | 布隆迪 | 基特加
South Sudan | Juba | 南苏丹 | 朱巴
Seychelles | Victoria | 塞舌尔 | 维多利亚
Comoros | Moroni | 科摩罗 | 莫罗尼
Mauritius | Port Louis | 毛里求斯 | 路易港
Madagascar | Antananarivo | 马达加斯加 | 塔那那利佛
[Southern Africa]
Zambia | Lusaka | 赞比亚 | 卢萨卡
Zimbabwe | Harare | 津巴布韦 | 哈拉雷
Malawi | Lilongwe | 马拉维 | 利隆圭
Mozambique | Maputo | 莫桑比克 | 马普托
Botswana | Gaborone | 博茨瓦纳 | 哈博罗内
Namibia | Windhoek | 纳米比亚 | 温得和克
Lesotho | Maseru | 莱索托 | 马塞卢
[North and Central America]
United States | Washington, D.C. | 美国 | 华盛顿
Canada | Ottawa | 加拿大 | 渥太华
Belize | Belmopan | 伯利兹 | 贝尔莫潘
Honduras | Tegucigalpa | 洪都拉斯 | 特古西加尔巴
Nicaragua | Managua | 尼加拉瓜 | 马那瓜
Costa Rica | San José | 哥斯达黎加 | 圣何塞
[Caribbean]
Cuba | Havana | 古巴 | 哈瓦那
Haiti | Port-au-Prince | 海地 | 太子港
Dominican Republic | Santo Domingo | 多米尼加共和国 | 圣多明各
Jamaica | Kingston | 牙买加 | 金斯敦
Bahamas | Nassau | 巴哈马 | 拿骚
Barbados | Bridgetown | 巴巴多斯 | 布里奇敦
Trinidad and Tobago | Port of Spain | 特立尼达和多巴哥 | 西班牙港
Saint Lucia | Castries | 圣卢西亚 | 卡斯特里
Grenada | St. George's | 格林纳达 | 圣乔治
Dominica | Roseau | 多米尼克 | 罗索
Antigua and Barbuda | St. John's | 安提瓜和巴布达 | 圣约翰
Saint Kitts and Nevis | Basseterre | 圣基茨和尼维斯 | 巴斯特尔
[South America]
Colombia | Bogotá | 哥伦比亚 | 波哥大
Venezuela | Caracas | 委内瑞拉 | 加拉加斯
Ecuador | Quito | 厄瓜多尔 | 基多
Peru | Lima | 秘鲁 | 利马
Chile | Santiago | 智利 | 圣地亚哥
Argentina | Buenos Aires | 阿根廷 | 布宜诺斯艾利斯
Uruguay | Montevideo | 乌拉圭 | 蒙得维的亚
Paraguay | Asunción | 巴拉圭 | 亚松森
Brazil | Brasília | 巴西 | 巴西利亚
Guyana | Georgetown | 圭亚那 | 乔治敦
Suriname | Paramaribo | 苏里南 | 帕拉马里博
[Oceania]
Australia | Canberra | 澳大利亚 | 堪培拉
New Zealand | Wellington | 新西兰 | 惠灵顿
Papua New Guinea | Port Moresby | 巴布亚新几内亚 | 莫尔兹比港
Fiji | Suva | 斐济 | 苏瓦
Solomon Islands | Honiara | 所罗门群岛 | 霍尼亚拉
Vanuatu | Port Vila | 瓦努阿图 | 维拉港
Samoa | Apia | 萨摩亚 | 阿皮亚
Tonga | Nukuʻalofa | 汤加 | 努库阿洛法
Tuvalu | Funafuti | 图瓦卢 | 富纳富提
Federated States of Micronesia | Palikir | 密克罗尼西亚联邦 | 帕利基尔
Marshall Islands | Majuro | 马绍尔群岛 | 马朱罗
"""

Fact = tuple[str, str, str, str]
Record = dict[str, str | int | list[str]]


def read_facts() -> dict[str, list[Fact]]:
    """The table as region -> facts, in the order written."""
    regions: dict[str, list[Fact]] = {}
    region = ""
    for line in FACTS.strip().splitlines():
        if line.startswith("["):
            region = line.strip("[]")
            regions[region] = []
        else:
            country, capital, country_zh, capital_zh = line.split(" | ")
            regions[region].append((country, capital, country_zh, capital_zh))
    return regions


def build() -> tuple[list[Record], list[Record]]:
    """The English and the Chinese records: the same items, in the same order."""
    rng = random.Random(SEED)
    items = [(fact, facts) for facts in read_facts().values() for fact in facts]
    rng.shuffle(items)
    golds = [index % CHOICES for index in range(len(items))]
    rng.shuffle(golds)
    english: list[Record] = []
    chinese: list[Record] = []
    for (fact, neighbours), gold in zip(items, golds, strict=True):
        options = rng.sample([other for other in neighbours if other != fact], CHOICES - 1)
        options.insert(gold, fact)
        for records, country, capital in ((english, 0, 1), (chinese, 2, 3)):
            records.append(
                {
                    "country": fact[country],
                    "capital": fact[capital],
                    "choices": [option[capital] for option in options],
                    "answer": gold,
                }
            )
    return english, chinese


def main(folder: Path) -> None:
    for name, records in zip(("capitals_en", "capitals_zh"), build(), strict=True):
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
