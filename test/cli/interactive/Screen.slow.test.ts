import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Program from "../program.ts"
import type { Request } from "./model.ts"
import * as Random from "./random.ts"
import * as Sequences from "./sequences.ts"
import * as Session from "./session.ts"

Program.bundled()

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => String(from + index).padStart(3, "0"))

/** A line whose words are nowhere else. */
const words = (number: string) => `w${number}q is a line of words`

/** 300 lines as paragraphs, as items of a list, and as code. */
const long = [
  ...numbers(1, 100).map((number) => `${words(number)}\n\n`),
  ...numbers(101, 200).map((number) => `- ${words(number)}\n`),
  "\n```\n",
  ...numbers(201, 300).map((number) => `${words(number)}\n`),
  "```\n"
].join("")

/** Answers with a text in pieces of seven characters. */
const streams = ({ delta, ends }: Request, text: string) =>
  Effect.andThen(Effect.forEach(text.match(/[^]{1,7}/gu) ?? [], delta, { discard: true }), ends)

/** How often each line that has no such words, or has them more than once, is there. */
const notOnce = (text: string, lines: ReadonlyArray<string>) =>
  lines.flatMap((line) => {
    const times = Session.count(text, line)
    return times === 1 ? [] : [`${line}: ${times} times`]
  })

const markdown = `# A heading

Some **bold** words, *others*, and \`code\` with [a link](https://example.com/x).

- one
- two

| a | b |
|---|---|
| 1 | 2 |

> a quote

\`\`\`ts
const x = 1
\`\`\`

The last words.`

/** A session that gets blocks of Markdown, tool calls and new sizes in an order that the seed gives. */
const varied = Effect.fnUntraced(function* (seed: number) {
  const below = Random.numbers(seed)
  const { model, open } = yield* Session.make()
  const terminal = yield* open(["--yes"])
  const marks: Array<string> = []
  const mark = () => `m${marks.push(`m${marks.length}q`) - 1}q`
  const of = (least: number, most: number, line: () => string) =>
    Array.from({ length: least + below(most) }, line).join("")
  const words = () => of(0, 30, () => ` ${vocabulary[below(vocabulary.length)]}`)
  const blocks = [
    () => `${mark()}${words()} ${mark()}`,
    () => `# ${mark()}`,
    () => of(1, 12, () => `- ${mark()}${words()}\n`),
    () => `\`\`\`ts\n${of(1, 40, () => `${mark()} ${"x".repeat(below(140))}\n`)}\`\`\``,
    () => `| ${mark()} | b |\n|---|---|\n| ${mark()} | ${mark()} |`,
    () => `> ${mark()}\n> ${mark()}`
  ]
  yield* terminal.type("tell me\r")
  let request = yield* model.next
  yield* terminal.type("kept input")
  yield* terminal.holds("kept input")
  for (let step = 0; step < 40; step++) {
    const what = below(10)
    if (what < 7) {
      const text = `${blocks[below(blocks.length)]?.()}\n\n`
      for (let at = 0; at < text.length; ) {
        const size = 1 + below(40)
        yield* request.delta(text.slice(at, at + size))
        at += size
        if (below(10) === 0) yield* Session.pause(below(60))
      }
    } else if (what < 9) {
      const last = marks.at(-1) ?? ""
      yield* terminal.writes(last)
      // A frame on its way would come at the wrong size, which no program can mend.
      yield* Session.pause(150)
      yield* terminal.resize(65 + below(80), 16 + below(30))
      yield* Session.pause(150)
    } else {
      yield* request.calls(["shell", { command: `seq ${below(20)}; true ${mark()}` }])
      request = yield* model.next
    }
  }
  yield* request.delta("The end.")
  yield* request.ends
  yield* terminal.shows("The end.")
  yield* terminal.hides("Working")
  return { marks, text: terminal.scrollback().join("\n") }
})

const vocabulary = ["word", "漢字", "longerword", "👍🏽", "e\u0301", "`code`", "**bold**"]

describe("Screen", () => {
  it.live("P-13 an answer of 300 lines neither changes nor clears the screen, and takes no mouse", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      const started = terminal.bytes().length
      yield* terminal.type("tell me\r")
      yield* streams(yield* model.next, long)
      yield* terminal.writes("w300q")
      yield* terminal.hides("Working")
      const bytes = terminal.bytes()
      for (const mode of ["1049", "1047", "47", "1000", "1001", "1002", "1003", "1005", "1006", "1015", "9"])
        assert.notInclude(bytes, `\u001b[?${mode}h`)
      for (const cleared of ["\u001b[2J", "\u001b[3J"]) assert.notInclude(bytes.slice(started), cleared)
      assert.notInclude(bytes, "\u001b[3J")
      // A scroll region.
      assert.deepStrictEqual(
        Sequences.all(bytes).filter((sequence) => sequence.endsWith("r")),
        []
      )
    })
  )

  it.live(
    "P-14 the text from before the start and each of 300 lines are in the scrollback exactly once",
    () =>
      Effect.gen(function* () {
        const { model, open } = yield* Session.make()
        const old = numbers(1, 60).map((number) => `old${number}z`)
        const terminal = yield* open([], { before: `${old.join("\n")}\n` })
        yield* terminal.type("tell me\r")
        yield* streams(yield* model.next, long)
        yield* terminal.writes("w300q")
        yield* terminal.hides("Working")
        const text = terminal.scrollback().join("\n")
        const lines = numbers(1, 300).map((number) => `w${number}q`)
        assert.deepStrictEqual(notOnce(text, [...old, ...lines, "> tell me", "% context"]), [])
        const places = [...old, ...lines].map((line) => text.indexOf(line))
        assert.deepStrictEqual(
          places,
          places.toSorted((left, right) => left - right)
        )
      })
  )

  it.live("P-15 after resizes while it streams, and after it, each line is there once, with the input", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      const sizes = [
        [70, 30],
        [120, 30],
        [120, 20],
        [60, 24],
        [100, 40],
        [100, 30]
      ] as const
      yield* terminal.type("tell me\r")
      const { delta, ends } = yield* model.next
      yield* terminal.type("kept input")
      yield* terminal.holds("kept input")
      let last = 0
      for (const [cols, rows] of sizes) {
        for (const number of numbers(last + 1, last + 20)) yield* delta(`${words(number)} of it\n\n`)
        last += 20
        yield* terminal.shows(`w${String(last).padStart(3, "0")}q`)
        yield* Session.pause(100)
        yield* terminal.resize(cols, rows)
        yield* Session.pause(300)
        assert.strictEqual(terminal.input(), "kept input", `${cols} x ${rows}`)
      }
      yield* delta("The end.")
      yield* ends
      yield* terminal.shows("The end.")
      yield* terminal.hides("Working")
      const once = [...numbers(1, last).map((number) => `w${number}q`), "% context", "kept input", "The end."]
      assert.deepStrictEqual(notOnce(terminal.scrollback().join("\n"), once), [])
      for (const [cols, rows] of sizes) {
        yield* terminal.resize(cols, rows)
        yield* Session.pause(300)
        assert.strictEqual(terminal.input(), "kept input", `${cols} x ${rows}`)
        assert.deepStrictEqual(notOnce(terminal.scrollback().join("\n"), once), [], `${cols} x ${rows}`)
      }
    })
  )

  it.live.each([1, 2, 3])("P-15 Markdown, tools and sizes in any order, the %ith one", (seed) =>
    Effect.gen(function* () {
      const { marks, text } = yield* varied(seed)
      assert.deepStrictEqual(notOnce(text, [...marks, "% context", "> kept input", "The end."]), [], text)
      const places = marks.map((mark) => text.indexOf(mark))
      assert.deepStrictEqual(
        places,
        places.toSorted((left, right) => left - right)
      )
    })
  )

  it.live.each([
    { cols: 70, rows: 14 },
    { cols: 100, rows: 10 },
    { cols: 130, rows: 14 }
  ])("P-15 a paragraph longer than the screen, resized to $cols x $rows while it streams", ({ cols, rows }) =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open([], { cols: 100, rows: 14 })
      const text = numbers(0, 299).map((number) => `w${number}q`)
      yield* terminal.type("tell me\r")
      const { delta, ends } = yield* model.next
      yield* delta(text.join(" "))
      yield* terminal.shows("w299q")
      yield* Session.pause(200)
      yield* terminal.resize(cols, rows)
      yield* Session.pause(300)
      yield* delta("\n\nThe end.")
      yield* ends
      yield* terminal.shows("The end.")
      yield* terminal.hides("Working")
      const shown = terminal.scrollback().join("\n")
      assert.deepStrictEqual(notOnce(shown, [...text, "% context"]), [], shown)
    })
  )

  it.live("P-16 a tool that runs has →, then ✓ or ✗ with the result and the time", () =>
    Effect.gen(function* () {
      const { model, open, put } = yield* Session.make({ files: Session.waits })
      const terminal = yield* open(["--yes"])
      yield* terminal.type("do it\r")
      yield* (yield* model.next).calls(Session.wait)
      yield* terminal.shows(/^→ shell sh wait\.sh\b/m)
      put("go", "")
      const second = yield* model.next
      yield* terminal.writes(/^✓ shell sh wait\.sh · .+ · \d[\d.]* (?:ms|s)$/m)
      assert.notMatch(terminal.scrollback().join("\n"), /^→ shell/m)
      yield* second.calls(["shell", { command: "exit 3" }], ["read", { path: "none.txt" }])
      const third = yield* model.next
      yield* terminal.writes(/^✗ shell exit 3 · exit code 3 · \d[\d.]* (?:ms|s)$/m)
      yield* terminal.writes(/^✗ read none\.txt · .+ · \d[\d.]* (?:ms|s)$/m)
      yield* third.says("Done.")
      yield* terminal.shows("Done.")
      const text = terminal.scrollback().join("\n")
      for (const call of ["shell sh wait.sh", "shell exit 3", "read none.txt"])
        assert.strictEqual(Session.count(text, call), 1, text)
    })
  )

  it.live("P-17 the last 5 lines of shell, live too, and the number of others; Ctrl-O writes all", () =>
    Effect.gen(function* () {
      const script = `i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo "row-$i."; done\n${Session.waits["wait.sh"]}`
      const { model, open, put } = yield* Session.make({ files: { "rows.sh": script } })
      const terminal = yield* open(["--yes"])
      yield* terminal.type("do it\r")
      yield* (yield* model.next).calls(["shell", { command: "sh rows.sh" }])
      yield* terminal.shows("row-40.")
      assert.notInclude(terminal.scrollback().join("\n"), "row-20.")
      put("go", "")
      yield* (yield* model.next).says("Done.")
      yield* terminal.shows("Done.")
      const before = terminal.scrollback().join("\n")
      // 40 rows, "began" and "over".
      const last = ["row-38.", "row-39.", "row-40.", "began", "over"]
      assert.deepStrictEqual(
        last.filter((row) => !new RegExp(`^ +${row}$`, "m").test(before)),
        [],
        before
      )
      assert.notInclude(before, "row-37.")
      assert.match(before, /^ +… 37 more lines \(Ctrl-O\)$/m)
      yield* terminal.key("Ctrl-O")
      yield* terminal.writes("row-1.")
      yield* terminal.hides("Working")
      const after = terminal.scrollback().join("\n")
      for (const row of numbers(1, 37)) assert.include(after, `row-${Number(row)}.`)
    })
  )

  it.live("P-18 edit and write show a diff with line numbers, of at most 12 lines", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make({ files: { "a.txt": "one\ntwo\nthree\n" } })
      const terminal = yield* open(["--yes"])
      yield* terminal.type("do it\r")
      yield* (yield* model.next).calls(["edit", { path: "a.txt", oldText: "two", newText: "TWO" }])
      const second = yield* model.next
      yield* terminal.writes(/^ *2 - *two$/m)
      yield* terminal.writes(/^ *2 \+ *TWO$/m)
      yield* terminal.writes(/^✓ edit a\.txt · /m)
      const content = numbers(1, 40).map((number) => `new${number}\n`)
      yield* second.calls(["write", { path: "b.txt", content: content.join("") }])
      yield* (yield* model.next).says("Done.")
      yield* terminal.shows("Done.")
      const text = terminal.scrollback().join("\n")
      assert.match(text, /^ *1 \+ *new001$/m)
      assert.isAtMost(text.match(/\bnew\d{3}\b/g)?.length ?? 0, 12, text)
    })
  )

  it.live("P-19 the status line counts the seconds, and says that Esc stops", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("tell me\r")
      const request = yield* model.next
      yield* terminal.shows(/^Working \d+ s\b.*Esc stops/m)
      yield* terminal.shows(/^Working 2 s\b.*Esc stops/m)
      yield* request.says("Done.")
      yield* terminal.shows("Done.")
      yield* terminal.hides("Working")
    })
  )

  it.live("P-20 no line ends with spaces, and a code line of 150 columns is one line", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open([], { cols: 80 })
      const code = `const sum = ${numbers(1, 45).join("+")}`.slice(0, 150)
      assert.strictEqual(code.length, 150)
      yield* terminal.type("tell me\r")
      yield* streams(yield* model.next, `${markdown}\n\n\`\`\`ts\n${code}\n\`\`\`\n\nDone.`)
      yield* terminal.shows("Done.")
      yield* terminal.hides("Working")
      const lines = terminal.scrollback()
      assert.strictEqual(lines.filter((line) => line.includes(code)).length, 1, lines.join("\n"))
      assert.deepStrictEqual(
        lines.filter((line) => line.endsWith(" ") && !line.startsWith("> ")),
        []
      )
      assert.include(lines.join("\n"), "a link (https://example.com/x)")
    })
  )

  it.live("P-21 NO_COLOR and --no-color: no look but a reset", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const ways = [
        { args: [], env: { NO_COLOR: "1" } },
        { args: ["--no-color"], env: {} }
      ]
      for (const { args, env } of ways) {
        const terminal = yield* open(args, { env })
        yield* terminal.type("tell me\r")
        const first = yield* model.next
        yield* first.calls(["read", { path: "none.txt" }], ["shell", { command: "echo x" }])
        yield* terminal.shows("Allow shell?")
        yield* Session.settled
        yield* terminal.type("n")
        yield* terminal.shows("Why not?")
        yield* terminal.key("Enter")
        yield* streams(yield* model.next, markdown)
        yield* terminal.shows("The last words.")
        yield* terminal.type("/help\r")
        yield* terminal.writes("/permissions")
        const looks = new Set(Sequences.looks(terminal.bytes()))
        assert.deepStrictEqual(
          [...looks].filter((look) => !/^.\[0*m$/.test(look)).map((look) => JSON.stringify(look)),
          []
        )
        yield* terminal.key("Ctrl-D")
        yield* terminal.ended
      }
    })
  )

  it.live("P-22 LC_ALL=C: signs of ASCII", () =>
    Effect.gen(function* () {
      const { model, open, put } = yield* Session.make({ files: Session.waits, env: { LC_ALL: "C" } })
      const terminal = yield* open(["--yes"])
      yield* terminal.type("do it\r")
      yield* (yield* model.next).calls(Session.wait)
      yield* terminal.shows(/^-> shell sh wait\.sh\b/m)
      put("go", "")
      const second = yield* model.next
      yield* terminal.writes(/^ok shell sh wait\.sh /m)
      yield* second.calls(["shell", { command: "exit 3" }])
      yield* (yield* model.next).says("Done.")
      yield* terminal.shows("Done.")
      yield* terminal.writes(/^x shell exit 3 /m)
      assert.notMatch(terminal.bytes(), /[→✓✗▸]/)
    })
  )

  it.live("P-23 on 20 columns and 4 rows a prompt can be typed and sent", () =>
    Effect.gen(function* () {
      const { model, start } = yield* Session.make()
      const terminal = yield* start([], { cols: 20, rows: 4 })
      yield* terminal.until("the input", () => /^>(?: |$)/m.test(terminal.view()))
      yield* terminal.type("are you there")
      yield* terminal.shows("are you there")
      assert.strictEqual(terminal.input(), "are you there")
      yield* terminal.key("Enter")
      const request = yield* model.next
      assert.deepStrictEqual(request.of("user"), ["are you there"])
      yield* request.says("I am.")
      yield* terminal.writes("I am.")
    })
  )

  it.live("P-24 503: Trying again, and Esc stops it", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("tell me\r")
      yield* (yield* model.next).fails(503, "too busy", { "retry-after": "4" })
      yield* terminal.shows(/^Trying again in [1-4] s \(1 of \d+\) · .+ · Esc stops$/m)
      yield* terminal.key("Esc")
      yield* terminal.writes("Stopped.", { timeout: 3_000 })
      yield* terminal.hides("Trying again")
      yield* Session.pause(5_000)
      assert.strictEqual(model.requests.length, 1)
      yield* terminal.type("again\r")
      const request = yield* model.next
      assert.strictEqual(request.of("user").at(-1), "again")
      yield* request.fails(503, "too busy", { "retry-after": "1" })
      yield* (yield* model.next).says("Here I am.")
      yield* terminal.shows("Here I am.")
      yield* terminal.hides("Trying again")
    })
  )

  it.live("P-25 no server: Offline and the host; /retry sends the same prompt again", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      yield* model.stop
      yield* terminal.type("where are you\r")
      yield* terminal.writes(/^✗ Offline: 127\.0\.0\.1\S* cannot be reached\. Your prompt is kept\.$/m, {
        timeout: 40_000
      })
      yield* terminal.writes("/retry sends it again · /model chooses another model")
      yield* terminal.hides("Working")
      yield* model.start
      yield* terminal.type("/retry\r")
      const request = yield* model.next
      assert.deepStrictEqual(request.of("user"), ["where are you"])
      yield* request.says("Back again.")
      yield* terminal.shows("Back again.")
    })
  )

  it.live('P-26 one bell at an approval, none with notify: "off"', () =>
    Effect.gen(function* () {
      for (const [config, bells] of [
        [{}, 1],
        [{ notify: "off" }, 0]
      ] as const) {
        const { model, open } = yield* Session.make({ config })
        const terminal = yield* open()
        yield* terminal.type("do it\r")
        yield* (yield* model.next).calls(["shell", { command: "echo x" }])
        yield* terminal.shows("Allow shell?")
        yield* Session.settled
        yield* terminal.type("y")
        yield* (yield* model.next).says("Done.")
        yield* terminal.shows("Done.")
        yield* terminal.hides("Working")
        assert.strictEqual(Sequences.bells(terminal.bytes()), bells)
      }
    })
  )
})
