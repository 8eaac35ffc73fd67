import { assert, describe, it } from "@effect/vitest"
import { Option, Result } from "effect"
import * as Matcher from "../../src/cli/hooks/Matcher.ts"
import * as Verdict from "../../src/cli/hooks/Verdict.ts"

const matches = (matcher: string | undefined, subject: string) =>
  Result.getOrThrow(Matcher.parse(matcher))(subject)

describe("a matcher", () => {
  it("covers a name, names, and what a regular expression matches as a whole", () => {
    assert.strictEqual(matches("shell", "shell"), "own")
    assert.strictEqual(matches("shell|write", "write"), "own")
    assert.strictEqual(matches("mcp__github__.*", "mcp__github__list"), "own")
    for (const all of [undefined, "", "*"]) assert.strictEqual(matches(all, "anything"), "own")
    assert.isUndefined(matches("shel", "shell"))
    assert.isTrue(Result.isFailure(Matcher.parse("(")))
  })

  it("covers tools by the names of Claude Code, which its commands then get", () => {
    const names = {
      shell: "Bash",
      read: "Read",
      write: "Write",
      edit: "Edit",
      find: "Glob",
      grep: "Grep",
      list: "LS"
    }
    for (const [own, claude] of Object.entries(names)) {
      assert.strictEqual(matches(claude, own), "claude")
      assert.strictEqual(Matcher.nameOf(own, "claude"), claude)
    }
    const edit = { path: "a", oldText: "b", newText: "c", replaceAll: true }
    const theirs = { file_path: "a", old_string: "b", new_string: "c", replace_all: true }
    assert.deepStrictEqual(Matcher.toHook("edit", "claude", edit), theirs)
    assert.deepStrictEqual(Matcher.fromHook("edit", "claude", theirs), edit)
    assert.deepStrictEqual(Matcher.fromHook("edit", "claude", edit), edit)
    const several = { path: "a", edits: [{ oldText: "b", newText: "c" }] }
    assert.deepStrictEqual(Matcher.toHook("edit", "claude", several), {
      file_path: "a",
      edits: [{ old_string: "b", new_string: "c" }]
    })
    assert.deepStrictEqual(Matcher.toHook("shell", "claude", { command: "x", timeout: 2 }), {
      command: "x",
      timeout: 2000
    })
  })
})

const guard = { command: "guard", onFailure: Option.none(), point: "PreToolUse" } as const
const exit = (code: number, stdout = "", stderr = ""): Verdict.Ended => ({
  _tag: "Exit",
  code,
  stdout,
  stderr
})
const deciding = (permissionDecision: string, rest: object = {}) =>
  Verdict.of(guard, exit(0, JSON.stringify({ hookSpecificOutput: { permissionDecision, ...rest } })))

describe("several hooks", () => {
  it("deny before they ask, and ask before they allow", () => {
    const [deny, ask, allow] = [deciding("deny"), deciding("ask"), deciding("allow")]
    assert.isDefined(Verdict.together([allow, deny, ask]).block)
    assert.strictEqual(Verdict.together([allow, ask]).decision, "ask")
    assert.strictEqual(Verdict.together([allow]).decision, "allow")
    assert.isUndefined(Verdict.together([Verdict.of(guard, exit(0))]).decision)
  })

  it("must not change the same call twice", () => {
    const change = deciding("allow", { updatedInput: { command: "x" } })
    assert.deepStrictEqual(Verdict.together([change]).input, { command: "x" })
    assert.strictEqual(Verdict.together([change, change]).block, "2 hooks change this call")
  })
})

describe("the end of a hook", () => {
  it("approves as older hooks do, and ends the run with continue: false", () => {
    assert.strictEqual(Verdict.of(guard, exit(0, '{"decision":"approve"}')).decision, "allow")
    assert.strictEqual(Verdict.of(guard, exit(0, '{"continue":false,"stopReason":"enough"}')).stop, "enough")
    assert.deepStrictEqual(Verdict.of(guard, exit(0, '{"systemMessage":"note"}')).lines, ["note"])
  })

  it("is a line where a point refuses nothing", () => {
    const told = Verdict.of({ ...guard, point: "Notification" }, exit(2, "", "oh"))
    assert.deepStrictEqual([told.block, told.lines], [undefined, ["oh"]])
  })
})
