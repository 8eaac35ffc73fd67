import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Stretch from "./stretch.ts"
import * as Workspace from "./workspace.ts"

describe("a hostile repository", () => {
  const name = "a".repeat(230)
  const many = <A>(count: number, of: (index: number) => A) =>
    Array.from({ length: count }, (_, index) => of(index))
  const names = (count: number, folder = "") =>
    Object.fromEntries(many(count, (index) => [`${folder}${name}${index}`, ""]))
  const nested = Array.from({ length: 60 }, () => "x").join("/")

  it.live.each([
    [
      "900 rules and 3,000 long names",
      { ".gitignore": `*\n${many(900, (i) => `!a*${i}[0-9][a-z]?c`).join("\n")}`, ...names(3_000) }
    ],
    [
      "900 rules of many stars",
      { ".gitignore": `*\n${many(900, (i) => `!*a*a*${i}*b`).join("\n")}`, ...names(300) }
    ],
    [
      "rules over folders, below long names",
      {
        ".gitignore": many(900, (i) => `/**/*a*${i}b/**/*c*d`).join("\n"),
        ...names(200, `${`${name}/`.repeat(8)}`)
      }
    ],
    [
      "rules in each of many folders",
      Object.fromEntries(
        many(60, (depth) => [
          `${nested.slice(0, 2 * depth)}.gitignore`,
          many(900, (i) => `*a*${i}x`).join("\n")
        ])
      )
    ]
  ] as const)(
    "does not keep the process from other work: %s",
    ([, files]) =>
      Effect.gen(function* () {
        const { call } = yield* Workspace.make(files, () => ({ searchTime: "1 seconds" }))
        yield* call("list", { path: "none" })
        for (const [tool, params] of [
          ["list", {}],
          ["find", { pattern: "*b*a*c" }],
          ["grep", { pattern: "x", glob: "**/*a*/**/*a*a*b" }]
        ] as const) {
          const { stretch, total } = yield* Stretch.longest(call(tool, params))
          assert.isBelow(stretch, 100, tool)
          assert.isBelow(total, 2_500, tool)
        }
      }).pipe(Workspace.provide),
    Stretch.tries
  )

  it.live("lets no glob keep the process from other work", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make(names(2_000), () => ({ searchTime: "1 seconds" }))
      const hostile = [
        `${"*a".repeat(400)}b`,
        `{${many(190, (i) => `*a*a${i}*b`).join(",")}}`.slice(0, 1_000),
        "[".repeat(1_000),
        `${"**/*a*b/".repeat(120)}`,
        "{".repeat(500) + "}".repeat(500)
      ]
      for (const pattern of hostile) {
        const { stretch, total } = yield* Stretch.longest(call("find", { pattern }))
        assert.isBelow(stretch, 100, pattern.slice(0, 20))
        assert.isBelow(total, 2_500, pattern.slice(0, 20))
      }
    }).pipe(Workspace.provide)
  )
})
