import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { AgentEvent } from "effect-agent"
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"

Program.bundled()

/** Whether bubblewrap works here. */
const sandboxed = spawnSync("/usr/bin/bwrap", ["--unshare-all", "--ro-bind", "/", "/", "true"]).status === 0

const files = { "package.json": `{ "name": "x" }\n`, "src/a.ts": "one\ntwo\n", "src/b.ts": "three\n" }

/** Events of `--json`, each decoded as what it says it is. */
const eventsOf = (stdout: string) =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => Schema.decodeUnknownSync(Schema.toCodecJson(AgentEvent.AgentEvent))(JSON.parse(line)))

// Each test starts a program of its own, most of which wait for one another's processor.
describe.concurrent("the program", { timeout: 90_000 }, () => {
  describe("with local/rules", () => {
    it.effect("reads and lists in one batch, and answers from the results", () =>
      Effect.gen(function* () {
        const cwd = Program.folder(files)
        const { code, stderr, stdout } = yield* Program.run(["read package.json and list src"], { cwd })
        assert.strictEqual(code, 0)
        assert.match(stdout, /"name": "x"/)
        assert.match(stdout, /a\.ts/)
        assert.match(stderr, /Model: local\/rules \(no key is set/)
        assert.match(stderr, /→ read package\.json\n→ list src\n← /)
      })
    )

    it.effect("refuses what is no verb of its, with the ways to a model", () =>
      Effect.gen(function* () {
        const { code, stdout } = yield* Program.run(["write a poem about the sea"])
        assert.strictEqual(code, 5)
        assert.match(stdout, /not a language model.*set a key.*start a local server/)
      })
    )

    it.effect("works in the folder it is given, and writes the answer to a file", () =>
      Effect.gen(function* () {
        const cwd = Program.folder(files)
        const args = ["--cwd", join(cwd, "src"), "-o", "answer.txt", "count lines in a.ts"]
        const { code, stdout } = yield* Program.run(args, { cwd })
        assert.strictEqual(code, 0)
        assert.strictEqual(stdout, "read a.ts: 2 lines\n")
        assert.strictEqual(readFileSync(join(cwd, "answer.txt"), "utf8"), stdout)
      })
    )
  })

  describe("--json", () => {
    it.effect("writes one event a line, from RunStart to RunEnd", () =>
      Effect.gen(function* () {
        const cwd = Program.folder(files)
        const { code, stdout } = yield* Program.run(["--json", "read package.json and list src"], { cwd })
        assert.strictEqual(code, 0)
        const events = eventsOf(stdout)
        assert.deepStrictEqual(
          events.map(({ seq }) => seq),
          events.map((_, index) => index + 1)
        )
        assert.strictEqual(events[0]?._tag, "RunStart")
        const detected = events.find((event) => event._tag === "ToolsDetected")
        assert.deepStrictEqual(
          detected?.toolCalls.map(({ name }) => name),
          ["read", "list"]
        )
        const end = events.at(-1)
        assert.strictEqual(end?._tag === "RunEnd" && end.status, "completed")
      })
    )

    it.effect("ends with RunEnd when the run fails, and encodes why", () =>
      Effect.gen(function* () {
        const url = yield* Program.server((_, __, response) => {
          response.writeHead(401, { "content-type": "application/json" })
          response.end(`{"error":{"message":"bad key \u001b]0;x\u0007","type":"invalid_request_error"}}`)
        })
        const { code, stderr, stdout } = yield* Program.run(["--json", "hi"], { env: openAi(url) })
        assert.strictEqual(code, 1)
        const end = eventsOf(stdout).at(-1)
        assert.strictEqual(end?._tag === "RunEnd" && end.error?._tag, "ProviderError")
        assert.match(stderr, /openai: Unauthenticated.*Check OPENAI_API_KEY/)
        // oxlint-disable-next-line no-control-regex
        assert.notMatch(stdout + stderr, /[\u0007\u001b]/)
      })
    )
  })

  describe("stdin", () => {
    const echo = (_: unknown, body: string, response: Parameters<typeof Program.says>[0]) =>
      Program.says(response, [JSON.parse(body).input.at(-1).content])

    it.effect("is put behind the prompt", () =>
      Effect.gen(function* () {
        const url = yield* Program.server(echo)
        const { stdout } = yield* Program.run(["explain"], { env: openAi(url), stdin: "line 1\nline 2\n" })
        assert.strictEqual(stdout, "explain\n\n<stdin>\nline 1\nline 2\n</stdin>\n")
      })
    )

    it.effect("is the prompt, when there is no other", () =>
      Effect.gen(function* () {
        const url = yield* Program.server(echo)
        const { stdout } = yield* Program.run([], { env: openAi(url), stdin: "what is it?\n" })
        assert.strictEqual(stdout, "what is it?\n")
        const dash = yield* Program.run(["-"], { env: openAi(url), stdin: "and that?" })
        assert.strictEqual(dash.stdout, "and that?\n")
      })
    )

    it.effect("is refused when it is more than a model reads, also when it has no end", () =>
      Effect.gen(function* () {
        let asked = 0
        const url = yield* Program.server((_, __, response) => {
          asked++
          Program.says(response, ["ok"])
        })
        const most = 8 * 1024 * 1024
        const more = yield* Program.run(["-"], { env: openAi(url), stdin: "a".repeat(most + 1) })
        assert.strictEqual(more.code, 2)
        assert.match(more.stderr, /stdin has more than 8 MB.*Pipe in less/)
        const endless = Program.startIn(`yes | "$0" "$@"`, ["-"], { env: openAi(url) })
        const ended = yield* Effect.promise(() => endless.ended)
        assert.strictEqual(ended.code, 2)
        assert.strictEqual(asked, 0)
        const enough = yield* Program.run(["-"], { env: openAi(url), stdin: "a".repeat(most) })
        assert.deepStrictEqual([enough.code, asked], [0, 1])
      })
    )

    it.effect("is read to its end, however late its text comes, and the program says that it waits", () =>
      Effect.gen(function* () {
        const url = yield* Program.server(echo)
        // `cat` makes a pipe of the socket that a test writes to.
        const late = (args: ReadonlyArray<string>) =>
          Effect.promise(async () => {
            const { child, ended, says } = Program.startIn(`cat | "$0" "$@"`, args, {
              env: openAi(url),
              stdin: "open"
            })
            await says(/Waiting for the end of stdin.*< \/dev\/null/)
            child.stdin?.end("DATA\n")
            return (await ended).stdout
          })
        assert.strictEqual(yield* late(["-p", "review"]), "review\n\n<stdin>\nDATA\n</stdin>\n")
        assert.strictEqual(yield* late([]), "DATA\n")
        const quick = Program.startIn(`echo DATA | "$0" "$@"`, ["-p", "review"], { env: openAi(url) })
        assert.notMatch((yield* Effect.promise(() => quick.ended)).stderr, /Waiting/)
      })
    )

    it.effect("that is a silent open socket, as parents in Node make them, is left out and named", () =>
      Effect.gen(function* () {
        const cwd = Program.folder(files)
        const { code, stderr, stdout } = yield* Program.run(["list"], { cwd, stdin: "open" })
        assert.strictEqual(code, 0)
        assert.match(stdout, /package\.json/)
        assert.match(stderr, /stdin was left out/)
        assert.strictEqual((yield* Program.run([], { cwd, stdin: "open" })).code, 2)
      })
    )
  })

  describe("without a terminal", () => {
    const url = (seen: Array<string>) =>
      Program.server((_, body, response) => {
        seen.push(body)
        return seen.length === 1
          ? Program.calls(response, "write", { path: "new.txt", content: "hello" })
          : Program.says(response, [])
      })

    it.effect("refuses to write, tells the model, and exits 5 when there is no answer", () =>
      Effect.gen(function* () {
        const cwd = Program.folder({})
        const seen: Array<string> = []
        const { code, stderr } = yield* Program.run(["make a file"], { cwd, env: openAi(yield* url(seen)) })
        assert.strictEqual(code, 5)
        assert.isFalse(existsSync(join(cwd, "new.txt")))
        assert.match(seen[1] ?? "", /rejected: it needs approval/)
        assert.match(stderr, /Refused: write\. To let it run give --allow write, or --yes/)
      })
    )

    it.effect("writes when it was allowed", () =>
      Effect.gen(function* () {
        const cwd = Program.folder({})
        yield* Program.run(["--allow", "write", "make a file"], { cwd, env: openAi(yield* url([])) })
        assert.strictEqual(readFileSync(join(cwd, "new.txt"), "utf8"), "hello")
      })
    )

    it.effect("runs the commands that a rule allows, and no other", () =>
      Effect.gen(function* () {
        const cwd = Program.folder(files)
        const allow = ["--allow", "shell(cat src/a.ts)"]
        const { code, stdout } = yield* Program.run([...allow, "run cat src/a.ts"], { cwd })
        assert.strictEqual(code, 0)
        assert.match(stdout, /one\n {2}two/)
        for (const command of ["cat package.json", "cat src/a.ts > copy", "cat src/a.ts; touch made"]) {
          const other = yield* Program.run([...allow, `run ${command}`], { cwd })
          assert.strictEqual(other.code, 5)
          assert.match(other.stderr, /needs approval, as (?:no rule allows|the rules cannot read)/)
        }
        assert.isFalse(existsSync(join(cwd, "copy")) || existsSync(join(cwd, "made")))
        const denied = yield* Program.run(["--yes", "--deny", "shell(cat)", "run cat src/a.ts"], { cwd })
        assert.strictEqual(denied.code, 5)
        assert.match(denied.stderr, /a rule denies "cat"/)
        const unread = yield* Program.run(["--allow", "shell(cat *)", "x"], { cwd })
        assert.strictEqual(unread.code, 2)
        assert.match(unread.stderr, /shell\(COMMAND\)/)
      })
    )

    it.effect("does what the rules of a prompt say, one after the other", () =>
      Effect.gen(function* () {
        const cwd = Program.folder(files)
        const prompt = 'replace "two" with "2" in src/a.ts, then run cat src/a.ts'
        const { code, stdout } = yield* Program.run(["--yes", prompt], { cwd })
        assert.strictEqual(code, 0)
        assert.match(stdout, /one\n {2}2/)
        const denied = yield* Program.run(["--yes", "--deny", "shell", "run ls"], { cwd })
        assert.strictEqual(denied.code, 5)
        assert.match(denied.stderr, /--deny forbids it/)
      })
    )
  })

  describe("the sandbox of commands", () => {
    const elsewhere = join(import.meta.dirname, "made-by-a-command")

    it.effect.skipIf(!sandboxed)("is used, and confines commands to the folder", () =>
      Effect.gen(function* () {
        const cwd = Program.folder({ ".git/config": "config" })
        const run = (command: string, ...args: ReadonlyArray<string>) =>
          Program.run(["--yes", ...args, `run ${command}`], { cwd })
        const { code, stderr } = yield* run("echo a > inside")
        assert.strictEqual(code, 0)
        assert.match(stderr, /Commands run in bubblewrap, without network\n/)
        assert.strictEqual(readFileSync(join(cwd, "inside"), "utf8"), "a\n")
        yield* run(`echo a > ${elsewhere}; echo evil > .git/config`, "--sandbox", "require", "--network")
        assert.isFalse(existsSync(elsewhere))
        assert.strictEqual(readFileSync(join(cwd, ".git/config"), "utf8"), "config")
        const further = Program.folder({})
        yield* run(`echo a > ${further}/made`, "--writable", further)
        assert.isTrue(existsSync(join(further, "made")))
      })
    )

    it.effect("is off when it is not wanted, and looked for only with the tool shell", () =>
      Effect.gen(function* () {
        const cwd = Program.folder({ ".vscode/x": "x" })
        const off = yield* Program.run(["--yes", "--sandbox", "off", "run echo y > .vscode/x"], { cwd })
        assert.match(off.stderr, /Commands run without a sandbox \(--sandbox off\)\n/)
        assert.strictEqual(readFileSync(join(cwd, ".vscode/x"), "utf8"), "y\n")
        const without = yield* Program.run(["--tools", "list", "list"], { cwd })
        assert.notInclude(without.stderr, "Commands")
      })
    )

    it.effect("is refused or done without where none works", () =>
      Effect.gen(function* () {
        // A file that cannot be started takes the place of bubblewrap.
        const line = sandboxed
          ? 'exec bwrap --dev-bind / / --ro-bind /dev/null /usr/bin/bwrap "$0" "$@"'
          : '"$0" "$@"'
        const run = (...args: ReadonlyArray<string>) =>
          Effect.promise(() => Program.startIn(line, args, { cwd: Program.folder(files) }).ended)
        const required = yield* run("--sandbox", "require", "list")
        assert.strictEqual(required.code, 2)
        assert.match(required.stderr, /There is no sandbox for commands: ./)
        assert.strictEqual(required.stdout, "")
        const without = yield* run("--yes", "run cat src/b.ts")
        assert.match(without.stderr, /Model: .*\. Commands run without a sandbox \(.+\)\n/)
        assert.include(without.stdout, "three")
      })
    )
  })

  describe("exit codes", () => {
    it.effect.each<readonly [string, ReadonlyArray<string>, RegExp]>([
      ["an unknown flag", ["--bogus", "x"], /--bogus/],
      ["no prompt", [], /No prompt/],
      ["a model without a key", ["--model", "openai/gpt-5.5", "x"], /set OPENAI_API_KEY/],
      ["a folder that is not there", ["--cwd", "nowhere", "x"], /nowhere/]
    ])("2 for %s", ([, args, said]) =>
      Effect.gen(function* () {
        const { code, stderr, stdout } = yield* Program.run(args)
        assert.strictEqual(code, 2)
        assert.match(stderr, said)
        assert.strictEqual(stdout, "")
        assert.notMatch(stderr, /\n\s+at /)
      })
    )

    it.effect(
      "says where a prompt goes that begins like a command or a flag, and takes one that can be no other",
      () =>
        Effect.gen(function* () {
          for (const args of [["config", "the", "project"], ["sessions", "of", "today"], ["-x-is-a-flag"]]) {
            const { code, stderr } = yield* Program.run(args)
            assert.strictEqual(code, 2)
            assert.include(stderr, 'goes behind --: effect-agent -- "…"')
            assert.isAtMost(stderr.trim().split("\n").length, 5)
          }
          for (const args of [["-p", "models"], ["-p", "-x is this a flag?"], ["- one\n- two"]])
            assert.notStrictEqual((yield* Program.run(args)).code, 2)
        })
    )

    it.effect("3 at a limit", () =>
      Effect.gen(function* () {
        const cwd = Program.folder(files)
        const turns = yield* Program.run(["--max-turns", "1", "list"], { cwd })
        assert.strictEqual(turns.code, 3)
        assert.match(turns.stderr, /Stopped after 1 turn\./)
        const time = yield* Program.run(["--yes", "--timeout", "300ms", "run sleep 30"], { cwd })
        assert.strictEqual(time.code, 3)
        assert.match(time.stderr, /Stopped after 0\.3 seconds/)
      })
    )

    it.effect("1 for an answer that was cut, which is shown as far as it goes", () =>
      Effect.gen(function* () {
        const url = yield* Program.server((_, __, response) =>
          Program.says(response, ["half an ans"], "length")
        )
        const { code, stderr, stdout } = yield* Program.run(["hi"], { env: openAi(url) })
        assert.deepStrictEqual([code, stdout], [1, "half an ans\n"])
        assert.match(stderr, /The answer was cut/)
      })
    )
  })

  describe("with a key", () => {
    it.effect("asks again where the model says nothing", () =>
      Effect.gen(function* () {
        const texts = [[], ["There."]]
        const url = yield* Program.server((_, __, response) => Program.says(response, texts.shift() ?? []))
        const { code, stdout } = yield* Program.run(["hi"], { env: openAi(url) })
        assert.deepStrictEqual([code, stdout], [0, "There.\n"])
      })
    )

    it.effect("leaves the file for the answer as it is when there is no answer", () =>
      Effect.gen(function* () {
        const cwd = Program.folder({ "limit.md": "old", "cut.md": "old" })
        const url = yield* Program.server((_, body, response) =>
          body.includes("be short")
            ? Program.says(response, ["half an ans"], "length")
            : Program.calls(response, "list", {}, "Let me look.")
        )
        const limit = ["--max-turns", "1", "-o", "limit.md", "what is here?"]
        assert.strictEqual((yield* Program.run(limit, { cwd, env: openAi(url) })).code, 3)
        assert.strictEqual(readFileSync(join(cwd, "limit.md"), "utf8"), "old")
        const cut = ["-o", "cut.md", "be short"]
        assert.strictEqual((yield* Program.run(cut, { cwd, env: openAi(url) })).code, 1)
        assert.strictEqual(readFileSync(join(cwd, "cut.md"), "utf8"), "old")
      })
    )

    it.effect("asks its company, and streams the text (row 267)", () =>
      Effect.gen(function* () {
        const seen: Array<string | undefined> = []
        const url = yield* Program.server((request, body, response) => {
          seen.push(request.headers.authorization, JSON.parse(body).model)
          Program.says(response, ["Hel", "lo ", "there"])
        })
        const { code, stderr, stdout } = yield* Program.run(["hi"], { env: openAi(url) })
        assert.deepStrictEqual([code, stdout], [0, "Hello there\n"])
        assert.deepStrictEqual(seen, ["Bearer sk-test", "gpt-5.5"])
        assert.match(stderr, /Model: openai\/gpt-5\.5 \(OPENAI_API_KEY is set\)/)
        assert.notMatch(stderr, /sk-test/)
      })
    )

    it.effect("speaks Responses to openai, and Chat Completions to openai-chat", () =>
      Effect.gen(function* () {
        const seen: Array<string | undefined> = []
        const url = yield* Program.server((request, _, response) => {
          seen.push(request.url)
          Program.says(response, ["Hi"])
        })
        for (const model of ["openai/gpt-4.1", "openai-chat/gpt-4.1"]) {
          const { code, stdout } = yield* Program.run(["-m", model, "hi"], { env: openAi(url) })
          assert.deepStrictEqual([code, stdout], [0, "Hi\n"])
        }
        assert.deepStrictEqual(seen, ["/v1/responses", "/v1/chat/completions"])
      })
    )

    it.effect("sends the options of the model to the address of --base-url", () =>
      Effect.gen(function* () {
        const bodies: Array<Record<string, unknown>> = []
        const url = yield* Program.server((_, body, response) => {
          bodies.push(JSON.parse(body))
          Program.says(response, ["Hi"])
        })
        const elsewhere = openAi("http://127.0.0.1:1")
        const at = ["--base-url", `${url}/v1/`, "--max-tokens", "500"]
        const chat = [...at, "--temperature", "0.5", "-m", "openai-chat/gpt-4.1", "hi"]
        assert.strictEqual((yield* Program.run(chat, { env: elsewhere })).stdout, "Hi\n")
        const thinking = [...at, "--effort", "low", "-m", "openai/gpt-5.5", "hi"]
        assert.strictEqual((yield* Program.run(thinking, { env: elsewhere })).stdout, "Hi\n")
        assert.deepInclude(bodies[0], { model: "gpt-4.1", temperature: 0.5, max_completion_tokens: 500 })
        assert.deepInclude(bodies[1], { model: "gpt-5.5", max_output_tokens: 500 })
        assert.nestedPropertyVal(bodies[1], "reasoning.effort", "low")
      })
    )

    it.effect("hears once of each option that was changed for the model", () =>
      Effect.gen(function* () {
        const url = yield* Program.server((_, body, response) =>
          body.includes("call_1")
            ? Program.says(response, ["Done"])
            : Program.calls(response, "list", { path: "." })
        )
        for (const flags of [[], ["--json"]]) {
          const args = ["-m", "openai-chat/gpt-5.6-sol", ...flags, "hi"]
          const { stderr } = yield* Program.run(args, { env: openAi(url) })
          assert.strictEqual(stderr.split('thinkingLevel is "none": On Chat Completions').length, 2, stderr)
        }
      })
    )
  })

  describe("what is shown", () => {
    it.effect("has no colours without a terminal, unless they are forced", () =>
      Effect.gen(function* () {
        const cwd = Program.folder(files)
        const plain = yield* Program.run(["list"], { cwd })
        const forced = yield* Program.run(["list"], { cwd, env: { FORCE_COLOR: "1" } })
        const never = yield* Program.run(["--no-color", "list"], { cwd, env: { FORCE_COLOR: "1" } })
        assert.deepStrictEqual(
          [plain, forced, never].map(({ stderr }) => stderr.includes("\u001b[")),
          [false, true, false]
        )
      })
    )

    it.effect("F152: obeys no control sequence of a model or a tool", () =>
      Effect.gen(function* () {
        const url = yield* Program.server((_, body, response) =>
          body.includes("call_1")
            ? Program.says(response, ["a\u001b", "]52;c;aGk=\u0007b\u009b2J\r", "\n\u0000c"])
            : Program.calls(response, "shell", { command: "printf '\\033[2J\\rX'" })
        )
        const { stderr, stdout } = yield* Program.run(["--yes", "hi"], { env: openAi(url) })
        assert.strictEqual(stdout, "a\\u{1b}]52;c;aGk=\\u{7}b\\u{9b}2J\n\\u{0}c\n")
        assert.notMatch(stderr, /(?![\n\t])\p{Cc}/u)
      })
    )

    it.effect("says its version and its help", () =>
      Effect.gen(function* () {
        const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"))
        assert.deepStrictEqual(yield* Program.run(["--version"]), {
          code: 0,
          stdout: `${version}\n`,
          stderr: ""
        })
        const help = yield* Program.run(["--help"])
        assert.strictEqual(help.code, 0)
        assert.match(help.stdout, /read FILE\n.*list FOLDER/)
        assert.match(help.stdout, /HTTPS_PROXY/)
      })
    )
  })
})

// Alone: a server on a busy machine may take longer than it is waited for.
describe("the program without a key", { timeout: 90_000 }, () => {
  it.effect("finds a local server that can use tools", () =>
    Effect.gen(function* () {
      const url = yield* Program.server((request, body, response) => {
        if (request.url === "/v1/chat/completions") return Program.says(response, ["local"])
        response.writeHead(200, { "content-type": "application/json" })
        const capabilities = body.includes("plain") ? ["completion"] : ["completion", "tools"]
        const models = { data: [{ id: "nomic-embed" }, { id: "plain" }, { id: "able" }] }
        response.end(JSON.stringify(request.url === "/v1/models" ? models : { capabilities }))
      })
      const env = { OLLAMA_HOST: url.replace("http://", ""), CI: "" }
      const { stderr, stdout } = yield* Program.run(["hi"], { env })
      assert.strictEqual(stdout, "local\n")
      assert.match(stderr, /Model: ollama\/able \(found at http:\/\/127\.0\.0\.1:\d+\/v1\)/)
    })
  )
})

const openAi = (url: string) => ({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1` })
