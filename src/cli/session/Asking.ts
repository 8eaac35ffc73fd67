/** The requests to the person: approvals of calls, and questions of the model. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import type * as Payload from "../../api/Payload.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Preview from "../terminal/Preview.ts"
import * as Requests from "../terminal/Requests.ts"
import * as PlanTool from "../agent/PlanTool.ts"
import * as Markdown from "./Markdown.ts"
import type { Theme } from "./Theme.ts"
import * as Panels from "./Panel.ts"
import * as Prompt from "./Prompt.ts"
import type { Place } from "./Place.ts"
import type { Face, Services } from "./Face.ts"
import type { Transcript } from "./Transcript.ts"

/** The part of a session that its requests need. */
interface Owner {
  readonly place: Place
  readonly face: Face
  readonly theme: Theme
  readonly transcript: Transcript
  readonly run: { readonly runId: string } | undefined
  readonly say: (...lines: ReadonlyArray<string>) => void
  readonly note: (line: string) => void
  readonly fail: (line: string) => void
  readonly stop: () => void
  readonly do: (effect: Effect.Effect<unknown, Error, Services>) => unknown
  readonly follow: (runId: string, from: number) => Effect.Effect<void, Error, Services>
}

export class Asking {
  /** The panels of the requests that wait, of which the first one is shown. */
  panels: ReadonlyArray<Panels.Panel> = []
  /** The run that is suspended, whose requests the person answers. */
  private suspended: string | undefined
  private readonly session: Owner

  constructor(session: Owner) {
    this.session = session
  }

  /** Takes an event that concerns requests. */
  take(event: AgentEvent): void {
    switch (event._tag) {
      case "ApprovalRequested":
        return void this.session.do(this.ask(event))
      case "QuestionAsked":
        return this.question(event)
      case "ApprovalAnswered":
        return this.answered(event.approvalId)
      case "QuestionAnswered":
        return this.answered(event.questionId)
      case "ToolExecutionEnd":
        return this.closed()
      default:
        return
    }
  }

  /** Drops all requests. */
  clear(): void {
    this.panels = []
  }

  private readonly ask = Effect.fnUntraced(function* (this: Asking, request: OfTag<"ApprovalRequested">) {
    const { policy, root } = this.session.place
    const { params, toolName } = request
    const scope = Requests.scopeOf(toolName, params)
    if (policy.always.has(scope.key)) return yield* this.approve(request, { decision: "approve" })
    const preview = yield* Preview.of(toolName, params, root)
    const panel: Panels.Panel = Panels.approval({
      request,
      preview,
      place: () => [1, this.panels.length],
      scope: scopeWords(toolName, params, scope.words),
      why: this.whyOf(request),
      show: (lines) => this.session.say(...lines),
      choose: {
        yes: () => this.close(panel, this.approve(request, { decision: "approve" })),
        always: () => {
          policy.always.add(scope.key)
          this.close(panel, this.approve(request, { decision: "approve" }))
        },
        no: () =>
          this.session.face.edit("", "Why not?", (reason) => {
            const because = reason === undefined || reason.trim() === "" ? "you said no" : reason.trim()
            this.close(panel, this.approve(request, { decision: "reject", reason: because }))
          }),
        edit: () => this.session.do(this.edited(request, panel)),
        stop: () => {
          this.close(panel, this.approve(request, { decision: "reject", reason: "you said no" }))
          this.session.stop()
        }
      }
    })
    this.open(panel, "approval")
  })

  private whyOf({ reason, toolCallId }: OfTag<"ApprovalRequested">): ReadonlyArray<string> {
    const { rows } = this.session.transcript.view
    const isCall = ({ kind }: { readonly kind: string }) => kind === "tool" || kind === "agent"
    const call = rows.findLast((row) => row.toolCallId === toolCallId && isCall(row))
    const answer = rows.findLast((row) => row.kind === "answer" && row.messageId === call?.messageId)
    return [
      `Rule: ${Inert.line(reason ?? "no option allows it")}`,
      ...(answer === undefined ? [] : [`Before the call: ${Inert.line(answer.text)}`])
    ]
  }

  /** Lets the person change the call, and approves what it became. */
  private readonly edited = Effect.fnUntraced(function* (
    this: Asking,
    request: OfTag<"ApprovalRequested">,
    panel: Panels.Panel
  ) {
    const { params, toolName } = request
    const command = Prompt.commandOf(params)
    if (toolName === "shell" && command !== undefined) {
      this.session.face.edit(command, "Edit the command, and Enter approves it", (text) => {
        if (text !== undefined)
          this.close(
            panel,
            this.approve(request, { decision: "approve", params: Prompt.withCommand(params, text) })
          )
      })
      return
    }
    const text = yield* this.session.face.editor(
      `${JSON.stringify(params, undefined, 2)}\n`,
      `${toolName}.json`
    )
    if (text === undefined) return
    const changed = yield* Prompt.jsonOf(text)
    yield* this.approve(request, { decision: "approve", params: changed })
    this.closePanel(panel)
  })

  private approve(
    { approvalId, argumentsHash }: OfTag<"ApprovalRequested">,
    answer: Pick<Payload.AnswerApproval, "decision" | "params" | "reason">
  ) {
    return this.answer((runId) =>
      this.session.place.runs.approve(runId, approvalId, { ...answer, argumentsHash })
    )
  }

  private question(request: OfTag<"QuestionAsked">): void {
    const { runs } = this.session.place
    if (PlanTool.isPlan(request)) return this.plan(request)
    const panel: Panels.Panel = Panels.question({
      request,
      complain: (text) => this.session.fail(text),
      answer: (answer) =>
        this.close(
          panel,
          this.answer((runId) => runs.answer(runId, request.questionId, { answer }))
        ),
      decline: () =>
        this.close(
          panel,
          this.answer((runId) =>
            runs.answer(runId, request.questionId, { declined: true, reason: "the user declined" })
          )
        )
    })
    this.open(panel, "question")
  }

  /** Shows the plan of the model, which the person lets go, changes or puts off. */
  private plan(request: OfTag<"QuestionAsked">): void {
    const { face, place, theme } = this.session
    const give = (answer: Parameters<typeof place.runs.answer>[2]) =>
      this.close(
        panel,
        this.answer((runId) => place.runs.answer(runId, request.questionId, answer))
      )
    face.print(["The model proposes a plan:", ...Markdown.all(request.question, theme, face.width())])
    const panel: Panels.Panel = Panels.keys({
      requestId: request.questionId,
      title: ["Carry out this plan?"],
      keys: [
        ["1", "go, and ask before changes", () => give({ answer: PlanTool.answers.ask })],
        ["2", "go, and allow edits", () => give({ answer: PlanTool.answers.edits })],
        [
          "3",
          "change it",
          () =>
            face.edit("", "What should change?", (words) => {
              if (words !== undefined && words.trim() !== "")
                give({ answer: PlanTool.answers.change(words.trim()) })
            })
        ]
      ],
      back: "not now",
      cancel: () => give({ declined: true, reason: "not now" })
    })
    this.open(panel, "question")
  }

  /** Gives an answer to the run, and follows the one that continues it. */
  private answer(give: (runId: string) => Effect.Effect<{ readonly runId: string }, Error>) {
    return Effect.gen({ self: this }, function* () {
      const runId = this.session.run?.runId ?? this.suspended
      if (runId === undefined) return
      const next = (yield* give(runId)).runId
      if (next !== this.session.run?.runId) yield* this.session.follow(next, Date.now())
    }).pipe(Effect.catchIf(isAnswered, () => Effect.sync(() => this.session.note("Answered elsewhere."))))
  }

  /** Shows the requests of a run that is suspended. */
  reopen({ pending, runId }: Payload.Run): void {
    this.suspended = runId
    const base = { runId, seq: 0, timestamp: Date.now() }
    for (const request of pending.approvals) this.take({ _tag: "ApprovalRequested", ...base, ...request })
    for (const request of pending.questions) this.take({ _tag: "QuestionAsked", ...base, ...request })
  }

  private open(panel: Panels.Panel, what: "approval" | "question"): void {
    const others = this.panels.filter(({ requestId }) => requestId !== panel.requestId)
    this.panels = [...others, panel]
    this.session.face.notify(what)
    this.session.face.changed()
  }

  private close(panel: Panels.Panel, effect: Effect.Effect<unknown, Error, Services>): void {
    this.closePanel(panel)
    this.session.do(effect)
  }

  private closePanel(panel: Panels.Panel): void {
    this.panels = this.panels.filter((one) => one !== panel)
    this.session.face.changed()
  }

  /** An answer that another client gave closes the panel. */
  private answered(requestId: string): void {
    if (this.panels.some((panel) => panel.requestId === requestId)) this.session.note("Answered elsewhere.")
    this.panels = this.panels.filter((panel) => panel.requestId !== requestId)
  }

  /** Closes the panels of requests that are void. */
  private closed(): void {
    const { asked } = this.session.transcript.view
    const open = new Set(asked.map((one) => ("approvalId" in one ? one.approvalId : one.questionId)))
    this.panels = this.panels.filter(({ requestId = "" }) => open.has(requestId))
  }
}

const isAnswered = (problem: Error): boolean =>
  Predicate.hasProperty(problem, "_tag") &&
  (problem._tag === "AnswerConflict" || problem._tag === "RequestNotFound")

const scopeWords = (toolName: string, params: unknown, words: string): string => {
  const path = toolName === "write" || toolName === "edit" ? Prompt.pathOf(params) : undefined
  return path === undefined ? words : `for ${Inert.name(path)}`
}
