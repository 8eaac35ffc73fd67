import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { once } from "node:events"
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "../program.ts"
import type { Model } from "./model.ts"
import * as Sequences from "./sequences.ts"
import * as Session from "./session.ts"
import * as Terminal from "./terminal.ts"

Program.bundled()

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../../package.json"), "utf8"))

/** Writes beside the only session another one, whose id begins as that one does. Gives both ids. */
const doubled = (home: string) => {
  const [name = ""] = globSync("**/sessions/**/*.jsonl", { cwd: home })
  const file = join(home, name)
  const [line = ""] = readFileSync(file, "utf8").split("\n")
  const id: string = JSON.parse(line).sessionId
  const other = `${id.slice(0, 9)}${id[9] === "0" ? "1" : "0"}${id.slice(10)}`
  writeFileSync(file.replace(id, other), readFileSync(file, "utf8").replaceAll(id, other))
  return [id, other] as const
}

/** Answers each request by the number of messages of the person and the last of them. */
const counting = ({ always }: Model) =>
  always((request) => {
    const users = request.of("user")
    return request.says(`${users.length}: ${users.at(-1)}`)
  })

describe("Start and end", () => {
  it.live("P-01 the start shows both lines and the input, and has sent no request", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      const lines = terminal.scrollback()
      const first = lines.findIndex((line) => line.startsWith("effect-agent "))
      assert.match(
        lines[first] ?? "",
        new RegExp(`^effect-agent ${version} · openai-chat/gpt-4\\.1 · (?:~|/.*)/shop$`)
      )
      assert.strictEqual(lines[first + 1], Session.greeting)
      assert.strictEqual(terminal.input(), "")
      assert.strictEqual(terminal.cursor().x, 2)
      yield* Session.pause(300)
      assert.deepStrictEqual(model.requests, [])
    })
  )

  it.live("P-02 a prompt and Enter: one request, the answer once, the footer with the model and the id", () =>
    Effect.gen(function* () {
      const { model, open, sessions } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("Which colour is the sky?")
      yield* terminal.key("Enter")
      const request = yield* model.next
      assert.deepStrictEqual(request.of("user"), ["Which colour is the sky?"])
      yield* request.says("Blue as a rule.")
      yield* terminal.shows("Blue as a rule.")
      yield* terminal.hides("Working")
      const [session] = yield* sessions
      const id8 = session?.sessionId.slice(0, 8) ?? "none"
      yield* terminal.shows(
        new RegExp(`^ask · openai-chat/gpt-4\\.1 · \\d+ % context · \\S.* · ${id8}$`, "m")
      )
      const text = terminal.scrollback().join("\n")
      assert.strictEqual(Session.count(text, "Blue as a rule."), 1, text)
      assert.strictEqual(Session.count(text, "> Which colour is the sky?"), 1, text)
      assert.strictEqual(Session.count(text, "% context"), 1, text)
      assert.strictEqual(terminal.input(), "")
      assert.strictEqual(model.requests.length, 1)
    })
  )

  it.live("P-03 without key and network the rules work, and the start says how to get a model", () =>
    Effect.gen(function* () {
      const none = { EFFECT_AGENT_MODEL: "", OPENAI_API_KEY: "", OPENAI_BASE_URL: "" }
      const { open } = yield* Session.make({ env: none, files: { "a.txt": "quite a marvel\n" } })
      const terminal = yield* open([], { cols: 140 })
      const text = terminal.scrollback().join("\n")
      assert.include(
        text,
        'No model yet: local/rules runs simple commands, such as "read FILE" or "list FOLDER".'
      )
      assert.include(
        text,
        "To get a model: set ANTHROPIC_API_KEY or OPENAI_API_KEY, start ollama serve, or type /login."
      )
      yield* terminal.type("read a.txt")
      yield* terminal.key("Enter")
      yield* terminal.shows("quite a marvel")
    })
  )

  it.live("P-04 -i sends its text first and stays; a prompt without -i is one shot", () =>
    Effect.gen(function* () {
      const { model, open, start } = yield* Session.make()
      const terminal = yield* open(["-i", "Say one"])
      const first = yield* model.next
      assert.deepStrictEqual(first.of("user"), ["Say one"])
      yield* first.says("One.")
      yield* terminal.shows("One.")
      yield* terminal.hides("Working")
      yield* terminal.type("Say two")
      yield* terminal.key("Enter")
      const second = yield* model.next
      assert.deepStrictEqual(second.of("user"), ["Say one", "Say two"])
      yield* second.says("Two.")
      const shot = yield* start(["Say three"])
      yield* (yield* model.next).says("Three.")
      const { code } = yield* shot.ended
      assert.strictEqual(code, 0)
      assert.include(shot.view(), "Three.")
      assert.notInclude(shot.view(), Session.greeting)
    })
  )

  it.live("P-05 /quit, /exit and Ctrl-D leave with 0, and name the session if there was a prompt", () =>
    Effect.gen(function* () {
      const { model, open, sessions } = yield* Session.make()
      yield* counting(model)
      for (const way of ["/quit\r", "/exit\r", "\u0004"]) {
        const unused = yield* open()
        yield* unused.type(way)
        assert.strictEqual((yield* unused.ended).code, 0)
        assert.notInclude(unused.view(), "continues it")
        const terminal = yield* open()
        yield* terminal.type("hello\r")
        yield* terminal.shows("1: hello")
        yield* terminal.hides("Working")
        yield* terminal.type(way)
        const { code, column } = yield* terminal.ended
        assert.deepStrictEqual([code, column], [0, 0])
        const [session] = yield* sessions
        const id8 = session?.sessionId.slice(0, 8) ?? ""
        assert.include(terminal.view(), `Session ${id8} · effect-agent -r ${id8} continues it`)
      }
    })
  )

  it.live("P-06 Ctrl-C twice leaves after a notice; once, and again three seconds later, does not", () =>
    Effect.gen(function* () {
      const { open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.key("Ctrl-C")
      yield* terminal.shows("Press Ctrl-C again to leave")
      yield* Session.pause(3_000)
      yield* terminal.key("Ctrl-C")
      yield* Session.pause(500)
      assert.isTrue(terminal.isRunning())
      yield* terminal.shows("Press Ctrl-C again to leave")
      yield* terminal.key("Ctrl-C")
      assert.strictEqual((yield* terminal.ended).code, 0)
    })
  )

  it.live("P-07 Ctrl-D while it works: a notice, then 130, and the next -c sends a valid transcript", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make({ files: Session.waits })
      const terminal = yield* open(["--yes"])
      yield* terminal.type("wait\r")
      yield* (yield* model.next).calls(Session.wait, ["list", { path: "." }])
      yield* terminal.shows("→ shell")
      yield* terminal.key("Ctrl-D")
      yield* terminal.shows("Work goes on. Press Ctrl-D again to stop it and leave")
      assert.isTrue(terminal.isRunning())
      yield* terminal.key("Ctrl-D")
      assert.strictEqual((yield* terminal.ended).code, 130)
      const again = yield* open(["-c"])
      yield* again.type("and now\r")
      const { messages, of } = yield* model.next
      assert.deepStrictEqual(of("user").at(-1), "and now")
      const calls = messages.flatMap(({ calls }) => calls.map(({ id }) => id))
      const results = messages.flatMap(({ callId = [] }) => callId)
      assert.strictEqual(calls.length, 2)
      assert.deepStrictEqual(results, calls)
      // Each result follows its call, before anything else.
      const from = messages.findIndex((message) => message.calls.length > 0)
      assert.deepStrictEqual(
        messages.slice(from + 1, from + 3).map(({ role }) => role),
        ["tool", "tool"]
      )
    })
  )

  it.live("P-08 SIGTERM is 143 and SIGHUP 129, and the terminal is as it was", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      for (const isBusy of [false, true]) {
        for (const [signal, expected] of [
          ["SIGTERM", 143],
          ["SIGHUP", 129]
        ] as const) {
          const terminal = yield* open()
          if (isBusy) {
            yield* terminal.type("tell me\r")
            yield* (yield* model.next).delta("**Once** upon a `time")
            yield* terminal.shows("upon a")
          }
          yield* terminal.signal(signal)
          const { code, column, isStyled, stty } = yield* terminal.ended
          assert.deepStrictEqual([code, column, isStyled], [expected, 0, false], `${signal} ${isBusy}`)
          assert.strictEqual(stty.after, stty.before)
          assert.isEmpty(Sequences.leftOn(terminal.bytes()), Sequences.leftOn(terminal.bytes()).join("\n"))
        }
      }
    })
  )

  it.live("P-09 -c shows the last answer, and the next request has it", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      for (const number of [1, 2, 3, 4]) {
        yield* terminal.type(`question ${number}\r`)
        yield* (yield* model.next).says(`answer ${number}.`)
        yield* terminal.shows(`answer ${number}.`)
        yield* terminal.hides("Working")
      }
      yield* terminal.key("Ctrl-D")
      yield* terminal.ended
      const again = yield* open(["-c"])
      yield* again.shows("answer 4.")
      const text = again.scrollback().join("\n")
      for (const number of [2, 3, 4]) {
        assert.include(text, `question ${number}`)
        assert.include(text, `answer ${number}.`)
      }
      assert.notInclude(text, "answer 1.")
      yield* again.type("question 5\r")
      const { of } = yield* model.next
      assert.deepStrictEqual(
        of("assistant"),
        [1, 2, 3, 4].map((number) => `answer ${number}.`)
      )
    })
  )

  it.live("P-10 -r takes 4 characters of an id; several and none are 2", () =>
    Effect.gen(function* () {
      const { home, model, open, run, start } = yield* Session.make()
      yield* counting(model)
      const { stdout } = yield* run(["--output-format", "json", "first"])
      const id: string = JSON.parse(stdout).sessionId
      const terminal = yield* open(["-r", id.slice(0, 4)])
      yield* terminal.shows("1: first")
      yield* terminal.type("second\r")
      yield* terminal.shows("2: second")
      yield* terminal.hides("Working")
      yield* terminal.key("Ctrl-D")
      yield* terminal.ended
      const none = yield* start(["-r", id.startsWith("ffff") ? "0000" : "ffff"])
      assert.strictEqual((yield* none.ended).code, 2)
      const ids = doubled(home)
      const several = yield* start(["-r", id.slice(0, 4)], { cols: 140 })
      assert.strictEqual((yield* several.ended).code, 2)
      for (const each of ids) assert.include(several.view(), each)
    })
  )

  it.live("P-11 --url: the run is in runs list; a server that comes back is used again", () =>
    Effect.gen(function* () {
      const { cwd, env, home, model } = yield* Session.make()
      yield* counting(model)
      const secret = { EFFECT_AGENT_TOKEN: "a-token-of-the-test" }
      const serve = (port: number) =>
        Effect.acquireRelease(
          Effect.promise(async () => {
            const place = ["--port", String(port), "--json", "--session-dir", join(home, "served")]
            const { child, ended } = Program.start(["serve", ...place], { cwd, env: { ...env, ...secret } })
            const [line] = await Promise.race([
              once(child.stdout ?? child, "data"),
              ended.then(({ stderr }) => Promise.reject(new Error(stderr)))
            ])
            const stop = async () => {
              child.kill("SIGKILL")
              await ended
            }
            return { stop, url: String(JSON.parse(line).url) }
          }),
          ({ stop }) => Effect.promise(stop)
        )
      const server = yield* serve(0)
      // The variables of a run here are no business of a client.
      const own = Object.entries(env).filter(([name]) => !name.startsWith("EFFECT_AGENT_"))
      const client = { ...Object.fromEntries(own), ...secret }
      const terminal = yield* Terminal.open(Program.command(["--url", server.url]), { cwd, env: client })
      yield* terminal.until("the input", () => /^>(?: |$)/m.test(terminal.view()))
      yield* terminal.type("first\r")
      yield* terminal.shows("1: first")
      yield* terminal.hides("Working")
      const listed = yield* Program.run(["runs", "list", "--url", server.url, "--json"], { cwd, env: client })
      assert.strictEqual(listed.code, 0, listed.stderr)
      assert.match(listed.stdout, /completed/)
      yield* Effect.promise(server.stop)
      yield* terminal.shows("Connection lost", { timeout: 20_000 })
      yield* serve(Number(new URL(server.url).port))
      // It looks for the server now and then.
      yield* Session.pause(4_000)
      yield* terminal.type("second\r")
      yield* terminal.shows("2: second", { timeout: 20_000 })
    })
  )

  it.live("P-12 a pipe without --plain is one shot as before", () =>
    Effect.gen(function* () {
      const { model, run } = yield* Session.make()
      yield* counting(model)
      const piped = yield* run([], "hello")
      assert.deepStrictEqual([piped.code, piped.stdout], [0, "1: hello\n"], piped.stderr)
      const both = yield* run(["-p", "look at this"], "some text")
      assert.strictEqual(both.code, 0)
      assert.match(both.stdout, /^1: look at this[^]*some text/)
      assert.strictEqual(model.requests.length, 2)
      assert.notInclude(piped.stderr + both.stderr, Session.greeting)
    })
  )
})
