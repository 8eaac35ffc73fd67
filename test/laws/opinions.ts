/**
 * The hooks of a plan.
 */
import { Effect } from "effect"
import { Hook, Message } from "effect-agent"
import type { HookPlan } from "./plan.ts"
import type { Stage } from "./Stage.ts"

/** Each hook has its opinion once, at its `nth` invocation. */
export const hooks = (stage: Stage): ReadonlyArray<Hook.Runnable> =>
  stage.plan.hooks.map((plan) => hookOf(stage, plan))

const hookOf = (stage: Stage, plan: HookPlan): Hook.Runnable => {
  let invocations = 0
  /** Ticks, and acts if it is time to. */
  const when = <A>(act: () => A): Effect.Effect<A | void, string> =>
    Effect.andThen(
      stage.tick,
      Effect.suspend(() => {
        if (stage.calm || invocations++ !== plan.nth) return Effect.void
        return plan.does === "act" ? Effect.sync(act) : trouble[plan.does]
      })
    )
  switch (plan.point) {
    case "beforeTool":
      return Hook.beforeTool(({ call }) =>
        guarded(
          stage,
          plan,
          call.id,
          when(() => beforeTool(stage, plan.way, call.id))
        )
      )
    case "approveTool":
      return Hook.approveTool(({ call }) =>
        guarded(
          stage,
          plan,
          call.id,
          when(() => approveTool(stage, plan.way, call.id))
        )
      )
    case "afterTool":
      return Hook.afterTool(({ call }) => {
        if (invocations === plan.nth) stage.reviewed.add(call.id)
        return when(() => afterTool(plan.way))
      })
    default:
      return otherHook(stage, plan, when)
  }
}

type When = <A>(act: () => A) => Effect.Effect<A | void, string>

const trouble = {
  fail: Effect.fail("planned"),
  die: Effect.die(new Error("planned")),
  hang: Effect.never
}

const otherHook = (stage: Stage, { point, way }: HookPlan, when: When): Hook.Runnable => {
  switch (point) {
    case "beforeExecution":
      return Hook.beforeExecution(() => when(() => ({ modified: { modelOptions: { temperature: 1 } } })))
    case "afterExecution":
      return Hook.afterExecution(() => when(() => ({ modified: Message.assistant("changed") })))
    case "pauseCheck":
      return Hook.pauseCheck(() =>
        Effect.tap(
          when(() => ({ shouldPause: true })),
          (said) => (said === undefined ? Effect.void : stage.resumeSoon)
        )
      )
    case "beforeModel":
      return Hook.beforeModel(({ turn }) => when(() => beforeModel(way, turn)))
    case "afterModel":
      return Hook.afterModel(() => when(() => undefined))
    case "prepareNextTurn":
      return Hook.prepareNextTurn(({ messages }) => when(() => nextTurn(way, messages)))
    case "shouldStopAfterTurn":
      return Hook.shouldStopAfterTurn(() => when(() => true))
    case "transformMessages":
      return Hook.transformMessages(({ messages }) => when(() => messages.slice(-1 - way)))
    case "toModelMessages":
      return Hook.toModelMessages(({ messages }) =>
        when(() => messages.filter((message) => message.role !== "custom"))
      )
    case "steering":
      return Hook.steering(() => when(() => [Message.user(stage.text("polled"))]))
    case "followUp":
      return Hook.followUp(() => when(() => [Message.user(stage.text("polled"))]))
    default:
      return Hook.onError(() => when(() => undefined))
  }
}

const beforeModel = (way: number, turn: number): Hook.Output<"beforeModel"> => {
  const call = {
    type: "toolCall",
    id: `hook${turn}`,
    name: "plain",
    rawArguments: '{"n":1}',
    params: { n: 1 }
  } as const
  switch (way) {
    case 0:
      return { modified: { temperature: 0 } }
    case 1:
      return { skip: true, response: "instead" }
    case 2:
      return { skip: true, response: Message.assistant([call], { stopReason: "toolUse" }) }
    default:
      return { skip: true, reason: "planned" }
  }
}

const nextTurn = (way: number, messages: ReadonlyArray<Message.Message>): Hook.Output<"prepareNextTurn"> => {
  switch (way) {
    case 0:
      return { model: "other" }
    case 1:
      return { activeTools: ["plain", "slow"] }
    case 2:
      return { thinkingLevel: "high" }
    default:
      return { messages: messages.slice(-way) }
  }
}

/** A guard that does not come to an opinion rejects. */
const guarded = <A>(
  stage: Stage,
  { does }: HookPlan,
  callId: string,
  said: Effect.Effect<A | void, string>
): Effect.Effect<A | void, string> =>
  Effect.onExit(said, (exit) =>
    Effect.sync(() => {
      if (exit._tag === "Failure" && does !== "act") stage.decided(callId, "reject")
    })
  )

const beforeTool = (stage: Stage, way: number, callId: string): Hook.Output<"beforeTool"> => {
  switch (way) {
    case 0:
      stage.decided(callId, "block")
      return { block: true, reason: "planned" }
    case 1:
      stage.decided(callId, "skip")
      return { skip: true, result: "instead" }
    case 2:
      stage.decided(callId, "change")
      return { params: { n: 2 } }
    case 3:
      stage.decided(callId, "spoil")
      return { params: { n: "x" } }
    default:
      stage.decided(callId, "block")
      return { block: true, terminate: true }
  }
}

const approveTool = (stage: Stage, way: number, callId: string): Hook.Output<"approveTool"> => {
  switch (way) {
    case 0:
      return { approved: true }
    case 1:
      stage.decided(callId, "change")
      return { approved: true, params: { n: 3 } }
    case 2:
      stage.decided(callId, "spoil")
      return { approved: true, params: { n: "x" } }
    default:
      stage.decided(callId, "reject")
      return { approved: false }
  }
}

const afterTool = (way: number): Hook.Output<"afterTool"> => {
  switch (way) {
    case 0:
      return { retry: true }
    case 1:
      return { content: [Message.text("replaced")] }
    case 2:
      return { isError: true }
    case 3:
      return { isError: false }
    default:
      return { terminate: true }
  }
}
