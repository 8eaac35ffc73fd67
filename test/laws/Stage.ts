/**
 * What the parts of a plan share while it is played: the moments at which things are done, and a log of what was done.
 */
import { Effect, Fiber } from "effect"
import type { Agent } from "effect-agent"
import type { Deed, Plan } from "./plan.ts"

/** What guards said of a call. */
export type Decision = "block" | "skip" | "reject" | "change" | "spoil"

export class Stage {
  readonly plan: Plan
  agent: Agent.Agent | undefined
  /** Who waits for the run that goes on. */
  caller: Fiber.Fiber<unknown, unknown> | undefined
  /** From now on nothing goes wrong any more. */
  calm = false
  private moment = 0
  private texts = 0

  /** Texts of messages given to a queue by the application, and to a run by a polled hook. */
  readonly sent = {
    steering: new Array<string>(),
    followUp: new Array<string>(),
    polled: new Array<string>()
  }
  /** How many queued messages were thrown away on purpose. */
  cleared = 0
  readonly executions = new Map<string, number>()
  readonly decisions = new Map<string, ReadonlyArray<Decision>>()
  /** Calls whose result a hook had a say in. */
  readonly reviewed = new Set<string>()
  acquired = 0
  released = 0
  readonly wrong: Array<string> = []

  constructor(plan: Plan) {
    this.plan = plan
  }

  /** One moment passes, and what is planned for it is done. */
  readonly tick: Effect.Effect<void> = Effect.suspend(() => {
    const now = this.moment++
    const due = this.calm ? [] : this.plan.deeds.filter(({ at }) => at === now)
    return Effect.forEach(due, (deed) => this.perform(deed), { discard: true })
  })

  text(kind: keyof Stage["sent"]): string {
    const text = `${kind} ${++this.texts}`
    this.sent[kind].push(text)
    return text
  }

  decided(callId: string, decision: Decision): void {
    this.decisions.set(callId, [...(this.decisions.get(callId) ?? []), decision])
  }

  executed(callId: string): void {
    this.executions.set(callId, (this.executions.get(callId) ?? 0) + 1)
  }

  /** Something that has to be given back, as long as the scope lasts. */
  readonly resource = Effect.acquireRelease(
    Effect.sync(() => this.acquired++),
    () =>
      Effect.andThen(
        Effect.yieldNow,
        Effect.sync(() => this.released++)
      )
  )

  /** Others run a few times. */
  readonly linger = Effect.repeat(Effect.yieldNow, { times: 10 })

  /** Lets a paused run go on, a little later. */
  readonly resumeSoon = Effect.suspend(() =>
    Effect.forkDetach(Effect.andThen(this.linger, this.agent?.resume() ?? Effect.void))
  )

  private perform({ does }: Deed): Effect.Effect<unknown> {
    const { agent } = this
    if (agent === undefined) return Effect.void
    switch (does) {
      case "steer":
        return agent.steer(this.text("steering"))
      case "cut":
        return agent.steer(this.text("steering"), { interrupt: true })
      case "followUp":
        return agent.followUp(this.text("followUp"))
      case "cancel":
        return agent.cancel("planned")
      case "interrupt":
        return Effect.sync(() => this.caller?.interruptUnsafe())
      case "pause":
        return Effect.andThen(agent.pause("planned"), this.resumeSoon)
      case "clear":
        return Effect.flatMap(agent.queues.sizes, ({ followUp, steering }) => {
          this.cleared += followUp + steering
          return agent.queues.clear("all")
        })
      case "prompt":
        return Effect.match(agent.start("me too"), {
          onSuccess: () => void this.wrong.push("a second run began"),
          onFailure: () => undefined
        })
      case "update":
        return agent.update({ modelOptions: { temperature: 0.5 } }).pipe(Effect.orDie)
    }
  }
}
