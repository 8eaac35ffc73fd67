import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Option } from "effect"
import { CliOutput } from "effect/cli"
import * as LocalServers from "../../src/cli/agent/LocalServers.ts"
import * as ModelList from "../../src/cli/commands/ModelList.ts"
import * as ModelChoice from "../../src/cli/agent/ModelChoice.ts"
import * as Screen from "../../src/cli/terminal/Screen.ts"
import * as CommandLine from "../../src/cli/CommandLine.ts"
import * as Settings from "../../src/cli/settings/Settings.ts"
import { OpenAiCompatible } from "effect-agent/providers"
import * as Vendors from "../../src/cli/agent/Vendors.ts"

const services = Layer.merge(NodeServices.layer, CliOutput.layerPresenter({ present: () => Effect.void }))

const commands = {
  models: () => Effect.succeed(0),
  config: () => Effect.succeed(0),
  acp: () => Effect.succeed(0),
  runs: () => Effect.succeed(0),
  mcp: () => Effect.succeed(0),
  mcpServers: () => Effect.succeed(0),
  approve: () => Effect.succeed(0),
  sessions: () => Effect.succeed(0)
}

/** Without configuration files. */
const nowhere = { XDG_CONFIG_HOME: "/nowhere" }

/** Reads a command line beside variables. */
const reading =
  (env: Readonly<Record<string, string>>) =>
  (...args: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const parsed = yield* CommandLine.parse(args, "0", commands)
      if (!("line" in parsed)) return yield* Effect.die("no run")
      const { prompt, ...flags } = parsed.line
      const { settings } = yield* Settings.read(flags, { ...nowhere, ...env })
      return { ...settings, prompt }
    }).pipe(Effect.provide(services))

const parsed = reading({})

describe("Settings", () => {
  it.effect("joins the words of the prompt, whatever stands around them", () =>
    Effect.gen(function* () {
      const { model, outputFormat, prompt } = yield* parsed("read", "--json", "a.ts", "-m", "local/rules")
      assert.deepStrictEqual(
        [prompt, outputFormat, model],
        ["read a.ts", "stream-json", Option.some("local/rules")]
      )
      assert.strictEqual((yield* parsed("--", "--json", "is a flag")).prompt, "--json is a flag")
    })
  )

  it.effect("reads names of tools, with commas and repeated", () =>
    Effect.gen(function* () {
      const { allow, deny, tools } = yield* parsed(
        "--allow",
        "write, edit",
        "--allow",
        "shell",
        "--tools",
        "read",
        "x"
      )
      assert.deepStrictEqual(
        [[...allow.tools], [...deny.tools], tools],
        [["write", "edit", "shell"], [], ["read"]]
      )
      assert.deepStrictEqual((yield* parsed("--tools", "none", "x")).tools, [])
      assert.include((yield* parsed("x")).tools, "shell")
    })
  )

  it.effect("reads rules for commands among the names of tools", () =>
    Effect.gen(function* () {
      const list = "shell(git log -n 1, 'a b'), write ,shell(make)"
      const { allow, deny } = yield* parsed("--allow", list, "--allow", "edit", "--deny", "shell( rm )", "x")
      assert.deepStrictEqual([...allow.tools], ["write", "edit"])
      assert.deepStrictEqual(allow.commands, [["git", "log", "-n", "1,", "a b"], ["make"]])
      assert.deepStrictEqual([[...deny.tools], deny.commands], [[], [["rm"]]])
    })
  )

  it.effect.each([
    ["90", 90_000],
    ["90s", 90_000],
    ["1.5m", 90_000],
    ["500ms", 500],
    ["2h", 7_200_000]
  ] as const)("reads the time %s", ([text, millis]) =>
    Effect.gen(function* () {
      const { timeout } = yield* parsed("--timeout", text, "x")
      assert.deepStrictEqual(Option.map(timeout, Duration.toMillis), Option.some(millis))
    })
  )

  it.effect("reads the options of the model", () =>
    Effect.gen(function* () {
      const none = yield* parsed("x")
      const options = ["baseUrl", "effort", "maxTokens", "temperature"] as const
      assert.deepStrictEqual(
        options.map((name) => none[name]),
        options.map(() => Option.none())
      )
      const all = ["--max-tokens", "100", "--temperature", "0", "--effort", "xhigh"]
      const given = yield* parsed(...all, "--base-url", "http://localhost:8000/v1/", "x")
      assert.deepStrictEqual(
        options.map((name) => Option.getOrUndefined<string | number>(given[name])),
        ["http://localhost:8000/v1", "xhigh", 100, 0]
      )
    })
  )

  const withVariables = (env: Readonly<Record<string, string>>) =>
    reading(Object.fromEntries(Object.entries(env).map(([name, text]) => [`EFFECT_AGENT_${name}`, text])))

  it.effect("reads variables for the flags that are not given", () =>
    Effect.gen(function* () {
      const variables = withVariables({
        BASE_URL: "http://localhost:8000/v1/",
        EFFORT: "low",
        MAX_TOKENS: "100",
        TEMPERATURE: "0.5",
        SANDBOX: "require",
        DENY: "write,shell(git status)",
        TOOLS: "read,shell",
        FALLBACK_MODEL: "a/b:low, c/qwen3:8b",
        TIMEOUT: "5m",
        OUTPUT_FORMAT: "stream-json",
        NO_DETECT: "1",
        PRINT: ""
      })
      const read = (settings: Settings.Settings) => ({
        numbers: [settings.maxTokens, settings.temperature].map(Option.getOrUndefined<number>),
        texts: [settings.baseUrl, settings.effort].map(Option.getOrUndefined<string>),
        sandbox: settings.sandbox,
        deny: [[...settings.deny.tools], settings.deny.commands],
        tools: settings.tools,
        time: Option.map(settings.timeout, Duration.toMinutes),
        fallbacks: settings.fallbackModel,
        rest: [settings.outputFormat, settings.noDetect, settings.print]
      })
      const ofVariables = read(yield* variables("x"))
      assert.deepStrictEqual(ofVariables, {
        numbers: [100, 0.5],
        texts: ["http://localhost:8000/v1", "low"],
        sandbox: "require",
        deny: [["write"], [["git", "status"]]],
        tools: ["read", "shell"],
        time: Option.some(5),
        fallbacks: [{ name: "a/b", effort: "low" }, { name: "c/qwen3:8b" }],
        rest: ["stream-json", true, false]
      })
      const model = ["--base-url", "http://a", "--effort", "max", "--max-tokens", "9", "--temperature", "1"]
      const tools = ["--sandbox", "off", "--deny", "shell", "--tools", "edit"]
      assert.deepStrictEqual(read(yield* variables(...model, ...tools, "x")), {
        ...ofVariables,
        numbers: [9, 1],
        texts: ["http://a", "max"],
        sandbox: "off",
        // Nothing takes back what is denied.
        deny: [["shell", "write"], [["git", "status"]]],
        tools: ["edit"]
      })
    })
  )

  it.effect("reads no variable that would let tools run", () =>
    Effect.gen(function* () {
      const variables = withVariables({ ALLOW: "shell", YES: "1", APPROVE: "allow" })
      const { allow, approve, yes } = yield* variables("x")
      assert.deepStrictEqual([[...allow.tools], approve, yes], [[], Option.none(), false])
      assert.deepStrictEqual((yield* withVariables({ APPROVE: "deny" })("x")).approve, Option.some("deny"))
      const flags = yield* variables("--approve", "allow", "--yes", "--allow", "write", "x")
      assert.deepStrictEqual(
        [[...flags.allow.tools], flags.approve, flags.yes],
        [["write"], Option.some("allow"), true]
      )
    })
  )

  it.effect("keeps a session that a flag names, whatever a variable says", () =>
    Effect.gen(function* () {
      const variables = withVariables({ NO_SESSION: "1" })
      const noSession = (...args: ReadonlyArray<string>) =>
        Effect.map(variables(...args, "x"), (settings) => settings.noSession)
      const read = yield* Effect.all([noSession(), noSession("-c"), noSession("-c", "--no-session")])
      assert.deepStrictEqual(read, [true, false, true])
    })
  )

  it.effect("reads the effort behind the id of a model", () =>
    Effect.gen(function* () {
      const read = (...args: ReadonlyArray<string>) =>
        Effect.map(withVariables({ EFFORT: "low" })(...args, "x"), ({ effort, model }) =>
          [model, effort].map(Option.getOrUndefined<string>)
        )
      assert.deepStrictEqual(yield* read("-m", "openai/gpt-5.5:high"), ["openai/gpt-5.5", "high"])
      assert.deepStrictEqual(yield* read("-m", "ollama/qwen3:8b"), ["ollama/qwen3:8b", "low"])
      assert.deepStrictEqual(yield* read("-m", "a/b:high", "--effort", "off"), ["a/b", "off"])
    })
  )

  it.effect.each([
    ["BASE_URL", "localhost:8000"],
    ["EFFORT", "huge"],
    ["MAX_TOKENS", "0"],
    ["MAX_TOKENS", "many"],
    ["MAX_COST", "much"],
    ["TEMPERATURE", "3"],
    ["SANDBOX", "on"],
    ["JSON", "maybe"],
    ["DENY", "shell()"]
  ] as const)("refuses the variable %s with %j", ([name, text]) =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(withVariables({ [name]: text })("x"))
      assert.strictEqual(failure._tag, "UsageError")
      assert.include(failure.message, `EFFECT_AGENT_${name}: ${JSON.stringify(text)}. Expected: `)
    })
  )

  it.effect("names the levels of effort that there are", () =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(parsed("--effort", "huge", "x"))
      const faults = failure._tag === "ShowHelp" ? failure.errors.map(({ message }) => message) : []
      assert.match(faults.join(), /--effort: "huge".*off.*minimal.*low.*medium.*high.*xhigh.*max/)
    })
  )

  it.effect.each([
    [["--max-turns", "x"], '--max-turns: "x". Expected: a number above 0'],
    [["--tools", "a", "--tools", "b"], '--tools: "a,b". Expected: none, or names out of read,'],
    [["--store", "mysql://ada:secret@db/x"], '--store: "mysql://ada:…@db/x". Expected: sqlite:FILE,']
  ] as const)(
    "names the value of a flag that it refuses as it was typed, without a password: %j",
    ([args, said]) =>
      Effect.gen(function* () {
        const failure = yield* Effect.flip(parsed(...args, "x"))
        const faults = failure._tag === "ShowHelp" ? failure.errors.map(({ message }) => message) : []
        assert.include(faults.join(), said)
      })
  )

  it.effect.each([
    ["--base-url", "localhost:8000"],
    ["--base-url", "ftp://localhost"],
    ["--base-url", "http://"],
    ["--effort", "huge"],
    ["--effort", ""],
    ["--max-tokens", "0"],
    ["--max-tokens", "1.5"],
    ["--temperature", "warm"],
    ["--temperature", "2.1"],
    ["--temperature=-1"],
    ["--timeout", "soon"],
    ["--timeout", "0"],
    ["--max-turns", "0"],
    ["--max-turns", "many"],
    ["--tools", "read,nope"],
    ["--allow", ""],
    ["--deny", "nope"],
    ["--allow", "shell()"],
    ["--allow", "shell(git *)"],
    ["--allow", "shell(a; b)"],
    ["--allow", "shell(A=1 b)"],
    ["--allow", "shell(a"],
    ["--allow", "shell(a)b"],
    ["--allow", "write(a)"],
    ["--deny", "shell($X)"],
    ["--nope", "x"]
  ])("refuses %s %j", (args) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Effect.flip(parsed(...args, "x")))._tag, "ShowHelp")
    })
  )
})

describe("models", () => {
  const requested = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
    const requests: Array<ModelList.Request> = []
    const models = (request: ModelList.Request) =>
      Effect.sync(() => {
        requests.push(request)
        return 0
      })
    const parsed = yield* Effect.provide(CommandLine.parse(args, "0", { ...commands, models }), services)
    return { requests, prompt: "line" in parsed ? parsed.line.prompt : undefined }
  })
  const listed = (id: string, env = {}) => ModelList.list(id, env, { baseUrl: Option.none() })

  it.effect("is a command, and a word of a prompt behind another word or --", () =>
    Effect.gen(function* () {
      const [one] = (yield* requested("models", "anthropic", "--json")).requests
      assert.deepStrictEqual(one, { filter: Option.some("anthropic"), baseUrl: Option.none(), json: true })
      assert.deepStrictEqual(yield* requested("which", "models"), { requests: [], prompt: "which models" })
      assert.deepStrictEqual(yield* requested("--", "models"), { requests: [], prompt: "models" })
      assert.strictEqual((yield* Effect.flip(requested("models", "a", "b")))._tag, "ShowHelp")
    })
  )

  it.effect("lists ids with the model table and the prices", () =>
    Effect.gen(function* () {
      const rows = yield* listed("anthropic")
      assert.deepStrictEqual(
        rows.find(({ model }) => model === "claude-opus-5"),
        {
          provider: "anthropic",
          model: "claude-opus-5",
          contextWindow: 1_000_000,
          maxOutput: 128_000,
          input: ["text", "image", "pdf"],
          thinking: ["off", "low", "medium", "high", "xhigh", "max"],
          prices: { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25, cacheWriteLong: 10 }
        }
      )
      // The price list has no id of this family.
      const others = (yield* listed("openai")).filter(({ model }) => model === undefined)
      assert.include(
        others.map(({ family }) => family),
        "GPT-5 Codex"
      )
    })
  )

  /** They serve the models of others, and the price list has no prices of theirs. */
  const unlisted = new Set([
    "vercel",
    "tencent",
    "deepinfra",
    "sambanova",
    "nebius",
    "nvidia",
    "huggingface",
    "github"
  ])

  it.effect("knows each provider with a key", () =>
    Effect.gen(function* () {
      for (const { id } of Vendors.companies) {
        if (!unlisted.has(id)) assert.isAbove((yield* listed(id)).length, 0, id)
        else {
          const { message } = yield* Effect.flip(listed(id))
          assert.match(
            message,
            new RegExp(`^No list of the models of ${id} is known\\. Name one as ${id}/ID,`)
          )
        }
      }
    })
  )

  it.effect("filters by the name of a provider, of a model, or both", () =>
    Effect.gen(function* () {
      const find = (filter: string) => ModelList.find(filter, {}, { baseUrl: Option.none() })
      const namesOf = (rows: ReadonlyArray<ModelList.Row>) =>
        rows.map(({ model, provider }) => `${provider}/${model}`)
      assert.deepStrictEqual(yield* find("anthropic"), yield* listed("anthropic"))
      const everywhere = namesOf(yield* find("GPT-5.5"))
      assert.includeMembers(everywhere, ["openai/gpt-5.5", "openrouter/openai/gpt-5.5"])
      assert.isTrue(everywhere.every((name) => name.includes("gpt-5.5")))
      const some = namesOf(yield* find("anthropic/claude-opus"))
      assert.include(some, "anthropic/claude-opus-5")
      assert.isTrue(some.every((name) => name.startsWith("anthropic/claude-opus")))
      const { message } = yield* Effect.flip(find("no-such-model"))
      assert.match(
        message,
        /^No provider and no known model has "no-such-model" in its name\. Providers: anthropic,/
      )
    })
  )

  it.effect("names the providers instead of an unknown one", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(listed("nobody"))
      assert.match(message, /^"nobody" is no provider with a list of models\. Providers: anthropic, openai,/)
    })
  )

  it.live("says that a local server does not answer", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(listed("ollama", { OLLAMA_HOST: "127.0.0.1:1" }))
      assert.match(message, /^ollama does not answer at http:\/\/127\.0\.0\.1:1\/v1: start it/)
      const [request] = (yield* requested("models", "vllm", "--base-url", "http://127.0.0.1:1/x/")).requests
      const elsewhere = yield* Effect.flip(ModelList.list("vllm", {}, request ?? { baseUrl: Option.none() }))
      assert.match(elsewhere.message, /^vllm does not answer at http:\/\/127\.0\.0\.1:1\/x: start it/)
    })
  )
})

describe("ModelChoice", () => {
  const choose = (env: Readonly<Record<string, string>>, model?: string, baseUrl?: string) => {
    const [named, address] = [Option.fromUndefinedOr(model), Option.fromUndefinedOr(baseUrl)]
    return ModelChoice.choose(
      { model: named, baseUrl: address, noDetect: true },
      { ...nowhere, ...env }
    ).pipe(Effect.provide(NodeServices.layer))
  }

  it.effect("goes by what is named, then the environment, then keys in their order", () =>
    Effect.gen(function* () {
      const env = {
        EFFECT_AGENT_MODEL: "groq/x",
        GROQ_API_KEY: "k",
        OPENAI_API_KEY: "k",
        ANTHROPIC_API_KEY: "k"
      }
      const models = [
        yield* choose(env, "openai/gpt-5.5-mini"),
        yield* choose(env),
        yield* choose({ ...env, EFFECT_AGENT_MODEL: "" }),
        yield* choose({ OPENAI_API_KEY: "k", MISTRAL_API_KEY: "k" }),
        yield* choose({ OPENAI_API_KEY: " " }),
        yield* choose({}, "ollama/some/model:7b")
      ].map(({ model }) => model)
      assert.deepStrictEqual(models.slice(0, 2), ["openai/gpt-5.5-mini", "groq/x"])
      assert.match(models[2] ?? "", /^anthropic\//)
      assert.match(models[3] ?? "", /^openai\//)
      assert.deepStrictEqual(models.slice(4), ["local/rules", "ollama/some/model:7b"])
    })
  )

  it.effect("takes Amazon Bedrock when it is named, with a key or an account in another place", () =>
    Effect.gen(function* () {
      const named = "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
      for (const env of [{ AWS_BEARER_TOKEN_BEDROCK: "k" }, { AWS_ACCESS_KEY_ID: "k" }, {}])
        assert.strictEqual((yield* choose(env, named)).model, named)
      assert.strictEqual((yield* choose({ AWS_BEARER_TOKEN_BEDROCK: "k", CI: "1" })).model, "local/rules")
    })
  )

  it.effect.each([
    ["gpt-5.5", /provider\/id, not "gpt-5.5"\. Providers: local\/rules, .*, anthropic, openai,/],
    ["nobody/x", /Providers: /],
    ["openai/", /provider\/id/],
    ["local/model", /provider\/id/],
    ["groq/x", /^groq needs a key: set GROQ_API_KEY\.$/],
    ["openai-chat/x", /^openai-chat needs a key: set OPENAI_API_KEY\.$/]
  ] as const)("says what is wrong with %s", ([model, said]) =>
    Effect.gen(function* () {
      assert.match((yield* Effect.flip(choose({}, model))).message, said)
    })
  )
})

describe("--base-url", () => {
  const choose = (model: Option.Option<string>, env: Readonly<Record<string, string>> = {}) =>
    ModelChoice.choose(
      { model, baseUrl: Option.some("http://127.0.0.1:1/v1"), noDetect: false },
      { ...nowhere, ...env }
    ).pipe(Effect.provide(NodeServices.layer))

  it.effect("goes with a model that is named, or that a key chooses", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* choose(Option.some("vllm/x"))).model, "vllm/x")
      assert.strictEqual(
        (yield* choose(Option.none(), { GROQ_API_KEY: "k" })).model,
        "groq/openai/gpt-oss-120b"
      )
    })
  )

  it.effect("is refused without a model that a server runs, and no server is looked for", () =>
    Effect.gen(function* () {
      for (const model of [Option.none(), Option.some("local/rules")]) {
        assert.match((yield* Effect.flip(choose(model))).message, /^--base-url needs a model .* --model/)
      }
    })
  )
})

describe("Vendors", () => {
  it("are all presets of the library", () => {
    const known = [...Vendors.companies, ...Vendors.servers].map(({ id }) => id)
    assert.deepStrictEqual(
      Object.values(OpenAiCompatible.presets).filter(({ id }) => !known.includes(id)),
      []
    )
    for (const { apiKeyName, id } of Object.values(OpenAiCompatible.presets)) {
      const company = Vendors.companies.find((company) => company.id === id)
      assert.deepStrictEqual(company?.keyNames ?? [], apiKeyName === undefined ? [] : [apiKeyName], id)
    }
  })
})

describe("Local servers", () => {
  const [ollama] = Vendors.servers
  it.each([
    ["", "http://127.0.0.1:11434/v1", 11434],
    ["example.com", "http://example.com:11434/v1", 11434],
    ["127.0.0.1:8080", "http://127.0.0.1:8080/v1", 8080],
    ["127.0.0.1:80", "http://127.0.0.1/v1", 80],
    ["[::1]", "http://[::1]:11434/v1", 11434],
    ["[::1]:80/", "http://[::1]/v1", 80],
    ["0.0.0.0", "http://127.0.0.1:11434/v1", 11434],
    ["http://localhost", "http://localhost/v1", 80],
    ["https://localhost", "https://localhost/v1", 443],
    ["https://localhost:8443", "https://localhost:8443/v1", 8443]
  ] as const)("OLLAMA_HOST=%s", (host, address, port) => {
    const url = ollama?.baseUrl({ OLLAMA_HOST: host }) ?? ""
    assert.strictEqual(url, address)
    assert.strictEqual(LocalServers.portOf(new URL(url)), port)
  })
})

describe("Colours", () => {
  it.each([
    [{}, [true, false]],
    [{ NO_COLOR: "1" }, [false, false]],
    [{ FORCE_COLOR: "1" }, [true, true]],
    [{ FORCE_COLOR: "0" }, [false, false]],
    [{ FORCE_COLOR: "" }, [true, false]],
    [{ FORCE_COLOR: "", NO_COLOR: "1" }, [false, false]]
  ] as const)("with %j on a terminal, and without one", (env, wanted) => {
    const found = [true, false].map((isTerminal) => Screen.wantsColours({ isTerminal, flag: true, env }))
    assert.deepStrictEqual(found, [...wanted])
  })
})

describe("the address of an API", () => {
  it.each([
    ["openai-chat/m", "openai-chat/n", true],
    ["openai-chat/m", "anthropic/claude-x", false],
    ["vllm/m", "groq/y", false]
  ])("of %s gets a request for %s: %s", (first, model, isSent) => {
    const { baseUrl } = ModelChoice.besides(
      { baseUrl: Option.some("http://gateway") },
      { model: first },
      model
    )
    assert.strictEqual(Option.isSome(baseUrl), isSent)
  })
})
