import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Hook, Message, type Provider, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { ToolSearch } from "effect-agent/tool-search"
import * as Invariants from "../behaviour/invariants.ts"
import { outcomes, play, range, reasonOf, resultTexts, say } from "../behaviour/play.ts"
import * as Ranking from "../../src/tool-search/internal/Ranking.ts"

const done = ScriptedProvider.text("done")
const call = ScriptedProvider.toolCall
const tool = (name: string, description: string) =>
  Tool.make({
    name,
    description,
    params: Schema.Struct({ to: Schema.optionalKey(Schema.String) }),
    execute: () => Effect.succeed(`${name} ran`)
  })
const some = [
  tool("mail_send", "Sends an e-mail to a person."),
  tool("mail_list", "Lists the newest e-mails."),
  tool("createIssue", "Opens a ticket in the tracker."),
  tool("calendar_events", "Lists meetings of a day."),
  tool("invoice_pay", "Pays a bill.")
]
const filler = range(40).map((n) => say(`filler_${n}`))
const many = [...some, ...filler]
const namesOf = (requests: ReadonlyArray<Provider.ModelRequest>) =>
  requests.map(({ tools }) => tools.map(({ name }) => name))
const search = (query: string) => call("tool_search", { query })

describe("tool search", () => {
  it.effect("does nothing up to 40 tools, and without the layer", () =>
    Effect.gen(function* () {
      const forty = range(40).map((n) => say(`t${n}`))
      const plain = yield* play([done], { tools: forty })
      const layered = yield* play([done], { tools: forty, layer: ToolSearch.layer() })
      assert.deepStrictEqual(layered.requests[0]?.tools, plain.requests[0]?.tools)
      const all = yield* play([done], { tools: many })
      assert.strictEqual(all.requests[0]?.tools.length, 45)
    })
  )

  it.effect("keeps the tool that reads the rest of large results", () =>
    Effect.gen(function* () {
      const { requests } = yield* play([done], {
        tools: [...many, say("read_artifact")],
        layer: ToolSearch.layer({ always: ["filler_7"] })
      })
      assert.deepStrictEqual(namesOf(requests), [["tool_search", "filler_7", "read_artifact"]])
    })
  )

  it.effect("loads the schemas of what it finds, at the end, for the rest of the conversation", () =>
    Effect.gen(function* () {
      const script = [
        search("pay a bill"),
        search("send mails"),
        call("invoice_pay", {}),
        ScriptedProvider.text("paid")
      ]
      const first = yield* play(script, {
        tools: many,
        layer: ToolSearch.layer({ always: ["filler_7"], limit: 2 })
      })
      assert.deepStrictEqual(Invariants.broken(first.events), [])
      assert.deepStrictEqual(namesOf(first.requests), [
        ["tool_search", "filler_7"],
        ["tool_search", "filler_7", "invoice_pay"],
        ["tool_search", "filler_7", "invoice_pay", "mail_send", "mail_list"],
        ["tool_search", "filler_7", "invoice_pay", "mail_send", "mail_list"]
      ])
      assert.deepStrictEqual(resultTexts(first.view.messages), [
        "You can call these tools now:\n- invoice_pay: Pays a bill.",
        "You can call these tools now:\n- mail_send: Sends an e-mail to a person.\n- mail_list: Lists the newest e-mails.",
        "invoice_pay ran"
      ])
      // After a restart, from the transcript alone.
      const decoded = yield* Schema.decodeUnknownEffect(Schema.Array(Message.Message))(
        JSON.parse(JSON.stringify(first.view.messages))
      )
      const second = yield* play([done], {
        tools: many,
        messages: decoded,
        layer: ToolSearch.layer({ always: ["filler_7"], limit: 2 })
      })
      assert.deepStrictEqual(namesOf(second.requests)[0], namesOf(first.requests)[3])
      const definitions = first.requests.map(({ tools }) => tools)
      assert.strictEqual(definitions[3]?.[0], definitions[0]?.[0])
    })
  )

  it.effect("a tool that is not loaded runs if its arguments decode, and is loaded from then on", () =>
    Effect.gen(function* () {
      const script = [
        call("mail_send", { to: "ann" }),
        call("mail_list", { to: [1] }),
        call("none", {}),
        done
      ]
      const { events, requests, view } = yield* play(script, { tools: many, layer: ToolSearch.layer() })
      assert.deepStrictEqual(outcomes(events), ["success", "invalidArguments", "unknownTool"])
      assert.strictEqual(resultTexts(view.messages)[0], "mail_send ran")
      assert.deepStrictEqual(namesOf(requests)[3], ["tool_search", "mail_send", "mail_list"])
    })
  )

  it.effect(
    "a hook that changes a request leaves the other tools callable, and one that takes a tool out does not",
    () =>
      Effect.gen(function* () {
        const warm = Hook.beforeModel(() => Effect.succeed({ modified: { temperature: 1 } }))
        const script = [call("mail_send", {}), call("invoice_pay", {}), done]
        const loose = yield* play(script, { tools: many, hooks: [warm], layer: ToolSearch.layer() })
        assert.deepStrictEqual(outcomes(loose.events), ["success", "success"])
        const without = Hook.beforeModel(({ tools }) =>
          Effect.succeed({ modified: { tools: tools.filter(({ name }) => name !== "invoice_pay") } })
        )
        const strict = yield* play(script, {
          tools: many,
          hooks: [without],
          layer: ToolSearch.layer({ always: ["invoice_pay"] })
        })
        assert.deepStrictEqual(outcomes(strict.events), ["success", "unknownTool"])
      })
  )

  it.effect("the tool that must be called has its schema; activeTools bounds what is found", () =>
    Effect.gen(function* () {
      const chosen = yield* play([done], {
        tools: many,
        options: { modelOptions: { toolChoice: { name: "invoice_pay" } } },
        layer: ToolSearch.layer()
      })
      assert.deepStrictEqual(namesOf(chosen.requests), [["tool_search", "invoice_pay"]])
      const bounded = yield* play([search("mail"), call("mail_list", {}), done], {
        tools: many,
        options: { activeTools: ["mail_send", ...filler.map(({ name }) => name)] },
        layer: ToolSearch.layer()
      })
      assert.deepStrictEqual(namesOf(bounded.requests)[1], ["tool_search", "mail_send"])
      assert.deepStrictEqual(outcomes(bounded.events), ["success", "unknownTool"])
    })
  )

  it.effect("the model reads which tools there are, in bounds", () =>
    Effect.gen(function* () {
      const { requests, view } = yield* play([search("quantum gravity"), done], {
        tools: many,
        layer: ToolSearch.layer()
      })
      const [definition] = requests[0]?.tools ?? []
      assert.include(definition?.description, "Tools to load: mail_send, mail_list, createIssue,")
      assert.match(resultTexts(view.messages)[0] ?? "", /^No tool matches\..* mail_send, mail_list/)
      assert.deepStrictEqual(namesOf(requests)[1], ["tool_search"])
      const long = range(500).map((n) => say(`a_tool_with_a_long_name_${n}`))
      const other = yield* play([done], { tools: long, layer: ToolSearch.layer() })
      const { description = "" } = other.requests[0]?.tools[0] ?? {}
      assert.isBelow(description.length, 4_300)
      assert.match(description, /, and \d+ more\.$/)
    })
  )

  it.effect(
    "a tool of the application that has its name is left alone; at the limit of turns there are no tools",
    () =>
      Effect.gen(function* () {
        const own = yield* play([done], { tools: [...many, say("tool_search")], layer: ToolSearch.layer() })
        assert.strictEqual(own.requests[0]?.tools.length, 46)
        const last = yield* play([search("mail"), done], {
          tools: many,
          options: { limits: { maxTurns: 1, onMaxTurns: "wrapUp" } },
          layer: ToolSearch.layer()
        })
        assert.isUndefined(reasonOf(last.exit))
        assert.deepStrictEqual(namesOf(last.requests)[1], [])
      })
  )
})

describe("ranking", () => {
  const index = Ranking.index(some)
  const cases: ReadonlyArray<readonly [query: string, names: ReadonlyArray<string>]> = [
    ["send mail", ["mail_send", "mail_list"]],
    ["MAIL_LIST", ["mail_list", "mail_send"]],
    ["create an issue", ["createIssue"]],
    ["issues", ["createIssue"]],
    ["meeting", ["calendar_events"]],
    ["cal", ["calendar_events"]],
    ["list", ["mail_list", "calendar_events"]],
    ["", []],
    ["the of", []],
    ["(.*", []]
  ]
  it.each(cases)("%j finds %j", (query, names) => {
    const found = Ranking.search(index, query, 2).map(({ name }) => name)
    assert.deepStrictEqual(found, names)
  })

  it("keeps the order of tools that match alike, and the limit", () => {
    const index = Ranking.index(range(9).map((n) => tool(`read_${n}`, "Reads.")))
    assert.deepStrictEqual(
      Ranking.search(index, "read", 3).map(({ name }) => name),
      ["read_0", "read_1", "read_2"]
    )
  })
})
