"""Write arithmetic_zh.jsonl: Chinese word problems from seeded templates, answers computed.

Usage: python arithmetic_zh.py [FOLDER]    (default: the folder above this script)
"""

import json
import random
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random

SEED = 20250102
PER_TEMPLATE = 4

Problem = tuple[str, Fraction | int, str]
NAMES = ("小明", "小红", "小华", "小丽", "小刚", "小芳", "小军", "小雨")
NUMERALS = "零一二三四五六七八九十"


def shopping(rng: Random) -> Problem:
    pens, books = rng.randint(3, 9), rng.randint(2, 6)
    pen, book = rng.choice((2, 3)), rng.randint(4, 8)
    return (
        (
            f"{rng.choice(NAMES)}在文具店买了{pens}支铅笔和{books}本练习本。铅笔每支{pen}元，"
            f"练习本每本{book}元。一共要付多少元？"
        ),
        pens * pen + books * book,
        "元",
    )


def change(rng: Random) -> Problem:
    kilos, price = rng.randint(3, 6), Fraction(rng.choice((65, 72, 78, 85, 96)), 10)
    return (
        f"妈妈买了{kilos}千克苹果，每千克{float(price)}元，付给售货员100元，应找回多少元？",
        100 - kilos * price,
        "元",
    )


def distance(rng: Random) -> Problem:
    speed, first, second = rng.randint(12, 17) * 5, rng.randint(2, 4), rng.randint(2, 3)
    slower = speed - rng.choice((5, 10, 15))
    return (
        (
            f"一辆汽车从甲城开往乙城，前{first}小时每小时行{speed}千米，后{second}小时因下雨"
            f"每小时行{slower}千米，正好到达乙城。甲、乙两城之间的路程是多少千米？"
        ),
        speed * first + slower * second,
        "千米",
    )


def meeting(rng: Random) -> Problem:
    coach, lorry, hours = rng.randint(14, 18) * 5, rng.randint(10, 13) * 5, rng.randint(2, 5)
    return (
        (
            f"甲、乙两地相距{(coach + lorry) * hours}千米。一辆客车和一辆货车同时从两地出发，"
            f"相向而行，客车每小时行{coach}千米，货车每小时行{lorry}千米。经过几小时两车相遇？"
        ),
        hours,
        "小时",
    )


def chasing(rng: Random) -> Problem:
    walk, gap, minutes = rng.randint(10, 14) * 5, rng.randint(8, 12) * 10, rng.randint(4, 9)
    lead = gap * minutes
    return (
        (
            f"弟弟从家步行去图书馆，每分钟走{walk}米。当他走到离家{lead}米处时，哥哥从家骑自行车"
            f"沿同一条路追他，每分钟行{walk + gap}米。哥哥出发后几分钟能追上弟弟？"
        ),
        minutes,
        "分钟",
    )


def rectangle(rng: Random) -> Problem:
    width = rng.randint(12, 30)
    length = width + rng.randint(5, 20)
    return (
        (
            f"一块长方形菜地的周长是{2 * (length + width)}米，长是{length}米。"
            "这块菜地的面积是多少平方米？"
        ),
        length * width,
        "平方米",
    )


def wire(rng: Random) -> Problem:
    side = rng.randint(6, 15)
    width = side - rng.randint(2, 4)
    return (
        (
            f"一根铁丝正好可以围成一个边长{side}厘米的正方形。如果用这根铁丝围成一个宽{width}厘米的"
            "长方形，这个长方形的长是多少厘米？"
        ),
        2 * side - width,
        "厘米",
    )


def triangle(rng: Random) -> Problem:
    base, height, yield_ = rng.randint(10, 20) * 2, rng.randint(12, 25), rng.randint(3, 6)
    return (
        (
            f"一块三角形麦田的底是{base}米，高是{height}米，平均每平方米收小麦{yield_ / 10}千克。"
            "这块麦田一共可收小麦多少千克？"
        ),
        Fraction(base * height * yield_, 20),
        "千克",
    )


def remainder(rng: Random) -> Problem:
    children, each = rng.randint(6, 9), rng.randint(7, 12)
    left = rng.randint(1, children - 1)
    return (
        (
            f"老师把{children * each + left}颗糖平均分给{children}个小朋友，"
            "每人分到的颗数相同，并且尽可能多。最后还剩几颗糖？"
        ),
        left,
        "颗",
    )


def boats(rng: Random) -> Problem:
    seats, full = rng.randint(4, 8), rng.randint(5, 9)
    people = seats * full + rng.randint(1, seats - 1)
    return (
        f"{people}名同学去公园划船，每条船最多坐{seats}人。至少要租多少条船？",
        full + 1,
        "条",
    )


def cloth(rng: Random) -> Problem:
    per, suits = Fraction(rng.choice((22, 24, 26, 28)), 10), rng.randint(12, 25)
    total = int(per * suits) + 1
    return (
        f"做一套校服要用布{float(per)}米。现有{total}米布，最多可以做多少套这样的校服？",
        total // per,
        "套",
    )


def discount(rng: Random) -> Problem:
    goods = rng.choice(("书包", "台灯", "电饭锅", "自行车头盔"))
    measure = {"书包": "个", "台灯": "盏", "电饭锅": "个", "自行车头盔": "个"}[goods]
    price, off = rng.randint(8, 24) * 10, rng.randint(7, 9)
    return (
        (
            f"商场促销，所有商品一律打{NUMERALS[off]}折。一{measure}{goods}原价{price}元，"
            "现在买可以便宜多少元？"
        ),
        Fraction(price * (10 - off), 10),
        "元",
    )


def growth(rng: Random) -> Problem:
    last, percent = rng.randint(8, 20) * 100, rng.choice((5, 8, 10, 12, 15))
    return (
        f"某小学去年有学生{last}人，今年学生人数比去年增加了{percent}%。今年有学生多少人？",
        Fraction(last * (100 + percent), 100),
        "人",
    )


def germination(rng: Random) -> Problem:
    seeds, percent = rng.randint(4, 16) * 50, rng.choice((92, 94, 96, 98))
    return (
        f"农科站用{seeds}粒玉米种子做发芽试验，发芽率是{percent}%。没有发芽的种子有多少粒？",
        Fraction(seeds * (100 - percent), 100),
        "粒",
    )


def ages(rng: Random) -> Problem:
    later_child, years = rng.randint(11, 15), rng.randint(2, 5)
    child, father = later_child - years, later_child * 3 - years
    return (
        (f"爸爸今年{father}岁，儿子今年{child}岁。再过几年，爸爸的年龄正好是儿子的3倍？"),
        years,
        "年",
    )


def joint_work(rng: Random) -> Problem:
    first, second = rng.choice(((6, 3), (12, 6), (10, 15), (20, 30), (12, 4), (18, 9), (20, 5)))
    job = rng.choice(("修一段公路", "加工一批零件", "铺设一条管道"))
    return (
        (f"{job}，甲队单独做{first}天完成，乙队单独做{second}天完成。两队合作，需要多少天完成？"),
        1 / (Fraction(1, first) + Fraction(1, second)),
        "天",
    )


def fourth_score(rng: Random) -> Problem:
    scores = [rng.randint(84, 94) for _ in range(3)]
    fourth = rng.randint(90, 98)
    fourth -= (sum(scores) + fourth) % 4
    mean = (sum(scores) + fourth) // 4
    return (
        (
            f"{rng.choice(NAMES)}前三次数学测验的成绩分别是{scores[0]}分、{scores[1]}分和{scores[2]}分。"
            f"四次测验的平均成绩是{mean}分，第四次测验得了多少分？"
        ),
        fourth,
        "分",
    )


def reading(rng: Random) -> Problem:
    pages = rng.randint(8, 20) * 12
    return (
        (
            f"一本故事书共{pages}页。{rng.choice(NAMES)}第一天读了全书的三分之一，"
            "第二天读了余下页数的四分之一。还剩多少页没有读？"
        ),
        pages // 2,
        "页",
    )


def rope(rng: Random) -> Problem:
    part, whole = rng.choice(((2, 5), (3, 8), (3, 7), (2, 9), (3, 10)))
    used = part * rng.randint(2, 6)
    return (
        (
            f"一根绳子，用去了全长的{NUMERALS[whole]}分之{NUMERALS[part]}，正好用去{used}米。"
            "这根绳子原来长多少米？"
        ),
        Fraction(used * whole, part),
        "米",
    )


def chickens_rabbits(rng: Random) -> Problem:
    chickens, rabbits = rng.randint(8, 20), rng.randint(5, 15)
    return (
        (
            f"鸡和兔关在同一个笼子里，从上面数有{chickens + rabbits}个头，"
            f"从下面数有{2 * chickens + 4 * rabbits}只脚。笼子里有多少只兔？"
        ),
        rabbits,
        "只",
    )


def trees(rng: Random) -> Problem:
    gap, gaps = rng.randint(4, 8), rng.randint(20, 45)
    return (
        (
            f"在一条长{gap * gaps}米的小路的一侧植树，每隔{gap}米栽一棵，两端都要栽。"
            "一共要栽多少棵树？"
        ),
        gaps + 1,
        "棵",
    )


def ratio(rng: Random) -> Problem:
    sand, gravel = rng.choice(((3, 5), (2, 3), (3, 4), (4, 5)))
    unit = rng.randint(4, 12)
    total = unit * (2 + sand + gravel)
    return (
        (
            f"一种混凝土由水泥、沙子和石子按2∶{sand}∶{gravel}的质量比配制而成。"
            f"要配制{total}吨这样的混凝土，需要石子多少吨？"
        ),
        unit * gravel,
        "吨",
    )


def interest(rng: Random) -> Problem:
    capital, years = rng.randint(2, 20) * 1000, rng.choice((2, 3))
    rate = rng.choice((Fraction(15, 10), Fraction(2), Fraction(25, 10)))
    return (
        (
            f"王叔叔把{capital}元存入银行，定期{years}年，"
            f"年利率是{as_number(rate)}%，按单利计算。到期时他可以得到利息多少元？"
        ),
        capital * rate * years / 100,
        "元",
    )


def taxi(rng: Random) -> Problem:
    start, extra = rng.randint(8, 13), rng.randint(4, 15)
    per = Fraction(rng.choice((18, 20, 22, 24)), 10)
    return (
        (
            f"某市出租车的收费标准是：3千米以内（含3千米）收费{start}元，超过3千米的部分每千米收费"
            f"{as_number(per)}元。李老师乘出租车行了{3 + extra}千米，应付车费多少元？"
        ),
        start + per * extra,
        "元",
    )


def shelves(rng: Random) -> Problem:
    moved, upper = rng.randint(6, 18), rng.randint(70, 130)
    return (
        (
            f"书架的上层有{upper}本书。从上层拿{moved}本放到下层后，两层的书就同样多。"
            "下层原来有多少本书？"
        ),
        upper - 2 * moved,
        "本",
    )


def surplus_shortage(rng: Random) -> Problem:
    pupils, few = rng.randint(18, 36), rng.randint(3, 5)
    over = rng.randint(4, pupils - 5)
    return (
        (
            f"把一批图书分给若干名学生，如果每人分{few}本，就多出{over}本；"
            f"如果每人分{few + 1}本，就少{pupils - over}本。这批图书共有多少本？"
        ),
        pupils * few + over,
        "本",
    )


def water_tank(rng: Random) -> Problem:
    length, width, depth = rng.randint(4, 9), rng.randint(3, 5), rng.randint(2, 4)
    cubed = length * width * depth
    return (
        (
            f"一个长方体水箱从里面量长{length}分米、宽{width}分米、高{depth + 2}分米，"
            f"里面的水深{depth}分米。水箱里有水多少升？"
        ),
        cubed,
        "升",
    )


def salt_water(rng: Random) -> Problem:
    percent, total = rng.choice((5, 8, 10, 12, 15, 20)), rng.randint(3, 12) * 100
    return (
        f"要配制含盐率为{percent}%的盐水{total}克，需要加水多少克？",
        Fraction(total * (100 - percent), 100),
        "克",
    )


def sawing(rng: Random) -> Problem:
    pieces, minutes = rng.randint(4, 6), rng.randint(3, 6)
    more = pieces + rng.randint(2, 4)
    return (
        (
            f"把一根木头锯成{pieces}段要用{(pieces - 1) * minutes}分钟。照这样计算，"
            f"把同样的一根木头锯成{more}段要用多少分钟？"
        ),
        (more - 1) * minutes,
        "分钟",
    )


def machines(rng: Random) -> Problem:
    count, hours, each = rng.randint(3, 5), rng.randint(2, 5), rng.randint(12, 25)
    more, longer = count + rng.randint(2, 4), hours + rng.randint(1, 3)
    return (
        (
            f"{count}台同样的机器{hours}小时可以生产零件{count * hours * each}个。"
            f"照这样计算，{more}台这样的机器{longer}小时可以生产零件多少个？"
        ),
        more * longer * each,
        "个",
    )


def train_bridge(rng: Random) -> Problem:
    speed, seconds, train = rng.randint(20, 30), rng.randint(35, 60), rng.randint(15, 30) * 10
    return (
        (
            f"一列火车长{train}米，以每秒{speed}米的速度匀速通过一座大桥，从车头上桥到车尾离桥"
            f"共用{seconds}秒。这座大桥长多少米？"
        ),
        speed * seconds - train,
        "米",
    )


def film(rng: Random) -> Problem:
    hour, minute, minutes = rng.randint(13, 17), rng.randint(1, 5) * 10, rng.randint(17, 25) * 5
    end = hour * 60 + minute + minutes
    end_minute = f"{end % 60}分" if end % 60 else "整"
    return (
        (
            f"一部电影{hour}时{minute}分开始放映，{end // 60}时{end_minute}结束。"
            "这部电影放映了多少分钟？"
        ),
        minutes,
        "分钟",
    )


def tiles(rng: Random) -> Problem:
    side = rng.choice((3, 4, 5, 6))
    length, width = side * rng.randint(12, 20), side * rng.randint(7, 11)
    return (
        (
            f"一间教室的地面是长{length}分米、宽{width}分米的长方形，"
            f"用边长{side}分米的正方形地砖铺满地面，一共需要多少块地砖？"
        ),
        (length // side) * (width // side),
        "块",
    )


def river(rng: Random) -> Problem:
    boat, stream, hours = rng.randint(12, 20), rng.randint(2, 4), rng.randint(3, 6)
    return (
        (
            f"一艘船在静水中每小时航行{boat}千米，水流速度是每小时{stream}千米。"
            f"这艘船从甲港顺水航行{hours}小时到达乙港，两港之间的航程是多少千米？"
        ),
        (boat + stream) * hours,
        "千米",
    )


TEMPLATES: tuple[Callable[[Random], Problem], ...] = (
    shopping, change, distance, meeting, chasing, rectangle, wire, triangle, remainder,
    boats, cloth, discount, growth, germination, ages, joint_work, fourth_score, reading,
    rope, chickens_rabbits, trees, ratio, interest, taxi, shelves, surplus_shortage,
    water_tank, salt_water, sawing, machines, train_bridge, film, tiles, river,
)  # fmt: skip


def as_number(value: Fraction | int) -> int | float:
    """An int where the value is whole, else the decimal, which must be exact."""
    if value == int(value):
        return int(value)
    if (value * 100).denominator != 1:
        raise ValueError(f"{value} has more than two decimals")
    return float(value)


def build() -> list[dict[str, str | int | float]]:
    """PER_TEMPLATE distinct problems of each template, interleaved."""
    records: list[dict[str, str | int | float]] = []
    for index, template in enumerate(TEMPLATES):
        rng = random.Random(SEED + index)
        problems: dict[str, Problem] = {}
        while len(problems) < PER_TEMPLATE:
            problem = template(rng)
            # A second problem with the same answer would add little.
            if problem[1] not in (other[1] for other in problems.values()):
                problems[problem[0]] = problem
        for question, answer, unit in problems.values():
            records.append(
                {
                    "question": question,
                    "answer": as_number(answer),
                    "unit": unit,
                    "template": template.__name__,
                }
            )
    random.Random(SEED).shuffle(records)
    return records


def main(folder: Path) -> None:
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in build()]
    (folder / "arithmetic_zh.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
