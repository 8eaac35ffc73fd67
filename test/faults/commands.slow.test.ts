import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { CommandRules } from "effect-agent/tools"
import { spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import * as Vendors from "../../src/cli/agent/Vendors.ts"
import { presets } from "../../src/providers/presets.ts"
import { Random } from "../../harness/chaos/Random.ts"
import * as Workspace from "../tools/workspace.ts"

/** Names that a program could take for its options, or a shell for more than a name. */
const oddNames = [
  "-rf",
  "--help",
  "-",
  "--",
  "-e",
  "+x",
  "@file",
  "$(touch hacked)",
  "`touch hacked`",
  "a;touch hacked"
]

describe("names that look like options", () => {
  it.live.each(oddNames)(
    "F147: %s is a name to every tool, and no tool but the shell starts another process than ripgrep",
    (name) =>
      Effect.gen(function* () {
        const { call, fs, root } = yield* Workspace.make()
        const only = ripgrepOnly(yield* ChildProcessSpawner.ChildProcessSpawner)
        const alone = <A>(effect: Effect.Effect<A>) =>
          Effect.provideService(effect, ChildProcessSpawner.ChildProcessSpawner, only)
        const say = (tool: string, params: object) =>
          Effect.map(alone(call(tool, params)), ({ text }) => text)
        assert.include(yield* say("write", { path: `${name}/${name}`, content: "-v old" }), "Wrote new file")
        assert.include(
          yield* say("edit", { path: `${name}/${name}`, oldText: "-v old", newText: "-v new" }),
          "Replaced 1 place"
        )
        assert.strictEqual(yield* say("read", { path: `${name}/${name}` }), "-v new")
        assert.include(yield* say("list", { path: name }), name)
        assert.strictEqual(yield* say("find", { path: name, pattern: "*" }), `${name}/${name}`)
        assert.strictEqual(
          yield* say("grep", { path: name, pattern: "-v", literal: true }),
          `${name}/${name}:1: -v new`
        )
        assert.strictEqual(yield* say("grep", { path: name, pattern: "--help" }), "No line matches.")
        assert.deepStrictEqual(yield* fs.readDirectory(root), [name])
      }).pipe(Workspace.provide)
  )

  it.live("F147: a command that begins like an option of the shell is a command", () =>
    Effect.gen(function* () {
      const { call, fs, path, root } = yield* Workspace.make({ "--version": "#!/bin/sh\necho ran" })
      yield* fs.chmod(path.join(root, "--version"), 0o755)
      for (const command of ["-x", "-i", "+x", "--", "--login"]) {
        assert.include((yield* call("shell", { command })).text, "[Exit code 127]", command)
      }
      const PATH = `${root}:/usr/bin:/bin`
      for (const shell of ["/bin/sh", "/bin/bash"]) {
        const tools = yield* Workspace.make({}, () => ({ shell: { shell, environment: { PATH } } }))
        assert.strictEqual((yield* tools.call("shell", { command: "--version" })).text, "ran", shell)
      }
    }).pipe(Workspace.provide)
  )

  it.live("F147: a command is one argument to its shell, whatever is in it", () =>
    Effect.gen(function* () {
      const { call, fs, root } = yield* Workspace.make()
      const command = `printf '%s' "\\\\"; printf '%s' '$0 $1 "'; printf '%s' "; touch hacked"`
      assert.strictEqual((yield* call("shell", { command })).text, '\\$0 $1 "; touch hacked')
      assert.deepStrictEqual(yield* fs.readDirectory(root), [])
    }).pipe(Workspace.provide)
  )
})

const ripgrepOnly = ({ spawn }: ChildProcessSpawner.ChildProcessSpawner["Service"]) =>
  ChildProcessSpawner.make((command) =>
    command._tag === "StandardCommand" && command.command.endsWith("/rg")
      ? spawn(command)
      : Effect.die("a process was started")
  )

describe("the environment of commands", () => {
  it.live("F151: holds no key of a provider, whichever it is and whatever it looks like", () =>
    Effect.gen(function* () {
      const names = [
        ...Vendors.companies.flatMap(({ keyNames }) => keyNames),
        ...Object.values(presets).flatMap(({ apiKeyName }) => (apiKeyName === undefined ? [] : [apiKeyName])),
        "ANTHROPIC_CUSTOM_HEADERS",
        "EFFECT_AGENT_SERVER_TOKEN",
        "AZURE_OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_BEARER_TOKEN_BEDROCK",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "HF_TOKEN"
      ]
      const before = { ...process.env }
      for (const name of names) process.env[name] = `planted in ${name}`
      const { call } = yield* Workspace.make()
      const { text } = yield* call("shell", {
        command: "env; tr '\\0' '\\n' < /proc/self/environ; node -p 'JSON.stringify(process.env)'"
      })
      for (const name of names) delete process.env[name]
      Object.assign(process.env, before)
      assert.isAtLeast(names.length, 25)
      assert.include(text, "PATH=")
      assert.notInclude(text, "planted in")
    }).pipe(Workspace.provide)
  )
})

describe("commands and their rules", () => {
  const home = mkdtempSync(join(tmpdir(), "effect-agent-rules-"))
  const log = join(home, "log")
  beforeAll(() => {
    for (const name of ["good", "evil"]) {
      // Says its name and its arguments, each between marks that no argument holds.
      writeFileSync(
        join(home, name),
        `#!/bin/sh\nprintf '<${name}' >> ${log}\nprintf '|%s' "$@" >> ${log}\nprintf '>' >> ${log}\n`
      )
      chmodSync(join(home, name), 0o755)
    }
  })
  afterAll(() => rmSync(home, { recursive: true }))

  const shells = ["/bin/sh", "/bin/bash"].filter((shell) => existsSync(shell))

  /** The programs that a real shell runs, in order. */
  const ran = (shell: string, line: string): string => {
    writeFileSync(log, "")
    spawnSync(shell, ["-c", line], { cwd: home, env: { PATH: `${home}:/usr/bin:/bin` }, timeout: 5_000 })
    return readFileSync(log, "utf8")
  }

  // Parts of a line that turn one command into two, or hide one.
  const pieces = [
    ["good", "good", "good", "evil", "evil", "a", "-x", "'b c'", '"d e"', "go'o'd", "e\\vil", '"evil"', "''"],
    [" ", " ", " ", " ", " ", " ", ";", "&&", "||", "|", "\n", "&", "\\\n", "\t", "\r", "\\", "\u00a0"],
    ["$(", ")", "`", "$", "{", "}", "(", "<(", ">", "<", ">>", "2>&1", ">/dev/null", "#", "!", "*", "~"],
    ["A=1 ", "PATH=. ", "env ", "exec ", "eval ", "command ", "if ", "then ", "fi", "for ", "'", '"', "$IFS"],
    ["find . -exec ", "sed -i ", "xargs ", "sh -c ", "\u200b", "\u0000", "\u2028", "é", "> made", ">made"]
  ].flat()

  /** Lines that begin with `start` and that the rules allow. */
  function* allowedLines(rules: CommandRules.Rules, start: string, seed: number) {
    const dice = new Random(seed)
    for (let made = 0; made < 40_000; made++) {
      const parts = Array.from({ length: 1 + dice.upTo(8) }, () => pieces[dice.upTo(pieces.length - 1)] ?? "")
      const line = `${start}${parts.join("")}`
      if (CommandRules.judge(rules, line).decision === "allow") yield line
    }
  }

  it("F146: a rule that allows one program lets no other run, by the word of real shells", () => {
    let allowed = 0
    for (const line of allowedLines({ allow: [["good"]] }, "good ", 146)) {
      // Each needs processes of its own.
      if (++allowed > 40) break
      const expected = Result.getOrThrow(CommandRules.parse(line)).map(
        ([name, ...args]) => `<${[name, ...args].join("|")}${args.length === 0 ? "|" : ""}>`
      )
      for (const shell of shells) {
        // Commands of a pipe run side by side and write in any order; `||` leaves out.
        const actual = ran(shell, line)
        assert.notInclude(actual, "<evil", JSON.stringify(line))
        if (!/[|]/.test(line)) assert.strictEqual(actual, expected.join(""), JSON.stringify(line))
      }
    }
    assert.isAbove(allowed, 30)
    assert.deepStrictEqual(readdirSync(home).toSorted(), ["evil", "good", "log"])
  })

  it("F146: a rule that denies a program lets it run in no line that all else is allowed in", () => {
    let allowed = 0
    for (const line of allowedLines({ allow: [[]], deny: [["evil"]] }, "", 147)) {
      if (++allowed > 40) break
      for (const shell of shells) assert.notInclude(ran(shell, line), "<evil", JSON.stringify(line))
    }
    assert.isAbove(allowed, 30)
  })
})
