/** A run, from its start over what happens to its workers to its end, and what came of it. */
import type { Point } from "./deaths.ts"
import { ask, sleep } from "./http.ts"
import * as Oracle from "./oracle.ts"
import * as Stored from "./stored.ts"
import { Watcher } from "./watcher.ts"
import type { Workers } from "./workers.ts"
import * as World from "./world.ts"

export interface Options {
  readonly workers: Workers
  readonly url: string
  readonly world: string
  readonly sessionId: string
  readonly turns: number
  /** Whether a person sends a message while the run goes on. */
  readonly steers?: boolean
  /** Whether a person answers approvals and questions. */
  readonly asks?: boolean
  /** Whether a person pauses the run and resumes it. */
  readonly pauses?: boolean
  /** What is wrong with the run. Default: what is wrong with one whose turns have two tools each. */
  readonly judge?: (evidence: Oracle.Evidence) => ReadonlyArray<string>
}

/** What came of a run. */
export interface Played {
  readonly sessionId: string
  /** The calls whose end is unknown. */
  readonly unknown: number
  /** The model calls that were made again. */
  readonly repeats: number
  readonly events: number
  /** Milliseconds: the longest time without an event after each fault. */
  readonly takeovers: ReadonlyArray<number>
  readonly violations: ReadonlyArray<string>
}

/** Milliseconds that a run may take with all that happens to it. */
export const patience = 90_000

/** Asks workers until one answers, for as long as it may take. */
const insist = async (
  { workers }: Options,
  asked: Parameters<typeof ask>[1],
  until: number
): Promise<{ readonly status: number; readonly json: any } | undefined> => {
  while (Date.now() < until) {
    const { url } = workers
    const answer = url === undefined ? undefined : await ask(url, asked)
    if (answer !== undefined && answer.status < 500) return answer
    await sleep(20)
  }
  return undefined
}

/** A run that has begun. */
export class Play {
  readonly options: Options
  readonly watcher: Watcher
  readonly runId: string
  readonly accepted: Array<string> = []
  /** The times of faults that may have touched the run, in milliseconds since the epoch. */
  readonly faults: Array<number> = []
  readonly wrong: Array<string> = []
  private readonly watched: Promise<void>
  private readonly steered: Promise<unknown>

  private constructor(options: Options, runId: string) {
    this.options = options
    this.runId = runId
    this.watcher = new Watcher(runId, () => options.workers.url)
    this.watched = this.watcher.watch()
    this.steered = Promise.all([
      options.steers === true ? this.steer() : undefined,
      options.asks === true ? this.answer() : undefined,
      options.pauses === true ? this.pause() : undefined
    ])
  }

  /** Makes the session and starts its run, however often that takes; a text says why it could not. */
  static async start(options: Options): Promise<Play | string> {
    const { sessionId } = options
    const until = Date.now() + patience
    const made = await insist(options, { path: "/sessions", body: { sessionId } }, until)
    // A worker that died after it had made the session could not say so.
    if (made?.status !== 201 && made?.status !== 409)
      return `a session could not be made: ${JSON.stringify(made)}`
    const started = await insist(
      options,
      {
        path: `/sessions/${sessionId}/runs`,
        body: { prompt: "Work." },
        headers: { "idempotency-key": sessionId }
      },
      until
    )
    return started?.status === 201
      ? new Play(options, started.json.runId)
      : `a run could not be started: ${JSON.stringify(started)}`
  }

  private async steer(): Promise<void> {
    while (this.watcher.seen.length < 20 && !this.watcher.isOver) await sleep(5)
    const { url } = this.options.workers
    const message = "Steer."
    const answer =
      url === undefined ? undefined : await ask(url, { path: `/runs/${this.runId}/steer`, body: { message } })
    if (answer !== undefined && answer.status < 300) this.accepted.push(message)
  }

  /** Answers each request of the run until a worker says that it has the answer. */
  private async answer(): Promise<void> {
    const { options, watcher } = this
    for (let at = 0; !watcher.isOver; at++) {
      while (watcher.seen.length <= at && !watcher.isOver) await sleep(2)
      const { tag, text = "{}" } = watcher.seen[at] ?? {}
      if (tag !== "ApprovalRequested" && tag !== "QuestionAsked") continue
      const { approvalId, argumentsHash, questionId, toolCallId } = JSON.parse(text)
      const until = Date.now() + patience / 2
      const asked =
        tag === "ApprovalRequested"
          ? { path: `approvals/${approvalId}`, body: { decision: "approve", argumentsHash } }
          : { path: `questions/${questionId}`, body: { answer: toolCallId } }
      const path = `/runs/${this.runId}/${asked.path}`
      const answer = await insist(options, { path, body: asked.body }, until)
      if (answer?.status !== 200) this.wrong.push(`I5 an answer was refused: ${JSON.stringify(answer)}`)
    }
  }

  /** Pauses the run, and resumes it some time after it is paused. An acknowledged pause holds the run. */
  private async pause(): Promise<void> {
    const { options, runId, watcher } = this
    const until = Date.now() + patience / 2
    while (watcher.seen.length < 30 && !watcher.isOver) await sleep(2)
    const control = (how: string) => insist(options, { path: `/runs/${runId}/${how}`, body: {} }, until)
    const paused = await control("pause")
    if (paused === undefined || paused.status >= 300) return
    const isPaused = () => watcher.seen.some(({ tag }) => tag === "RunPaused")
    while (!isPaused() && !watcher.isOver && Date.now() < until) await sleep(2)
    if (!isPaused()) this.wrong.push("I5 a pause was accepted, and the run was not paused")
    await sleep(100)
    const resumed = await control("resume")
    if (resumed !== undefined && resumed.status < 300) return
    // The process that resumed the run may have died before it could say so: then the run is not paused any more.
    const isResumed = () => watcher.seen.some(({ tag }) => tag === "RunResumed")
    while (resumed?.status === 409 && !isResumed() && !watcher.isOver && Date.now() < until) await sleep(2)
    if (!isResumed()) this.wrong.push(`I5 a resume was refused: ${JSON.stringify(resumed)}`)
  }

  /** The process that did something for the run last. */
  get owner(): number | undefined {
    const { sessionId, world } = this.options
    return World.read(world).findLast((deed) => deed.sessionId === sessionId)?.pid
  }

  get isOver(): boolean {
    return this.watcher.isOver
  }

  /** Waits for the end, and judges what came. */
  async end(): Promise<Played> {
    const { options, runId, watcher } = this
    const hung = setTimeout(() => {
      this.wrong.push(
        `I7 the run has not ended ${patience} ms after its start, at ${watcher.seen.at(-1)?.text.slice(0, 200)}`
      )
      watcher.leave()
    }, patience)
    await Promise.all([this.watched, this.steered])
    clearTimeout(hung)
    const stored = await Stored.read(options.url, options.sessionId, runId)
    const { seen } = watcher
    const evidence: Oracle.Evidence = {
      turns: options.turns,
      faults: this.faults.length,
      seen,
      lines: stored.lines,
      messages: stored.messages,
      accepted: this.accepted,
      asks: options.asks === true,
      deeds: World.read(options.world).filter(({ sessionId }) => sessionId === options.sessionId)
    }
    const found = [
      ...this.wrong,
      ...watcher.faults,
      ...(stored.runs.length === 1 ? [] : [`one key started ${stored.runs.length} runs`]),
      ...(this.wrong.length > 0 ? [] : (options.judge ?? Oracle.violations)(evidence))
    ]
    return {
      sessionId: options.sessionId,
      unknown: Oracle.unknowns(evidence),
      repeats: Math.max(0, Oracle.repeats(evidence)),
      events: seen.length,
      takeovers: this.takeovers(),
      violations: found
    }
  }

  /** The longest time without an event after each fault, until the next one. */
  private takeovers(): ReadonlyArray<number> {
    const times = this.watcher.seen.map(({ at }) => at)
    const faults = [...new Set(this.faults)]
    return faults.flatMap((fault, index) => {
      const until = faults[index + 1] ?? Infinity
      const next = times.filter((at) => at > fault && at <= until)
      const gaps = next.map((at, place) => at - (next[place - 1] ?? fault))
      return gaps.length === 0 ? [] : [Math.max(...gaps)]
    })
  }
}

export const describePoint = ({ isAfter, write }: Point): string =>
  write === 0 ? "no write" : `${isAfter ? "after" : "before"} write ${write}`
