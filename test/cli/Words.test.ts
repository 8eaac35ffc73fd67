import { assert, describe, it } from "@effect/vitest"
import * as Words from "../../src/cli/Words.ts"

const commands = new Set(["sessions", "serve", "models", "mcp"])

describe("the words of the command line", () => {
  it.each([
    ["--store sqlite:s.db -y sessions show 4", "sessions show 4 --store sqlite:s.db -y"],
    ["--store=s.db sessions -- x", "sessions --store=s.db -- x"],
    ["--unknown x sessions", "--unknown x sessions"],
    ["-p models", "-p  models"],
    ["-m models hi", "-m models hi"],
    ["-- --json sessions", "-- --json sessions"]
  ])("%s: flags before a command count behind it", (line, expected) => {
    assert.strictEqual(Words.read(line.split(" "), commands).join(" "), expected)
  })

  it("let --resume stand without a session", () => {
    assert.deepStrictEqual(Words.read(["-r"], commands), ["-r", ""])
    assert.deepStrictEqual(Words.read(["--resume", "--json"], commands), ["--resume", "", "--json"])
    assert.deepStrictEqual(Words.read(["-r", "46f5", "hi"], commands), ["-r", "46f5", "hi"])
    assert.deepStrictEqual(Words.read(["--", "-r"], commands), ["--", "-r"])
  })

  it.each([
    ["sesions", ["sesions"], true],
    ["server", ["--json", "server"], true],
    ["help", ["help"], true],
    ["sesions", ["--", "sesions"], false],
    ["sesions", ["-p", "sesions"], false],
    ["list sessions", ["list", "sessions"], false],
    ["explain", ["explain"], false]
  ] as const)("are no prompt if %j is nearly a command: %j", (prompt, args, isMisspelt) => {
    assert.strictEqual(Words.misspelling(prompt, args, commands) !== undefined, isMisspelt)
  })
})
