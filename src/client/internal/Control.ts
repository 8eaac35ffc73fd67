/**
 * The control of the run of a session.
 */
import * as Effect from "effect/Effect"
import { NoRun } from "../ClientError.ts"
import type { Opened } from "./Following.ts"
import * as LinkOf from "./Link.ts"
import type * as Payload from "../../api/Payload.ts"
import type { RemoteAgent, ToRun } from "../RemoteAgent.ts"
import { NotPaused } from "../../internal/errors.ts"

/** The runs of the session, oldest first. */
export const list = ({ link, sessionId }: Opened) =>
  Effect.map(LinkOf.repeated(link, link.api.runs.list({ params: { sessionId } })), ({ items }) => items)

export const isGoing = ({ status }: Payload.Run): boolean =>
  status === "queued" || status === "running" || status === "paused"

type Control = Pick<RemoteAgent, "steer" | "followUp" | "pause" | "resume" | "cancel">

/** The functions that reach the run of the session. */
export const control = (opened: Opened): Control => {
  const { link } = opened
  const { pause, cancel } = link.api.control
  const ask = (request: typeof pause | typeof cancel, reason: string | undefined) =>
    toRun(
      opened,
      (runId) =>
        LinkOf.once((once) =>
          LinkOf.repeated(link, request({ params: { runId }, payload: because(reason), ...once }))
        ),
      Effect.void
    )
  return {
    ...messages(opened),
    pause: (reason) => ask(pause, reason),
    cancel: (reason) => ask(cancel, reason),
    resume: (reason) => resume(opened, reason)
  }
}

const because = (reason: string | undefined) => (reason === undefined ? {} : { reason })

const messages = (opened: Opened): Pick<Control, "steer" | "followUp"> => {
  const { link, sessionId } = opened
  const { steer, followUp } = link.api.control
  const noRun = Effect.suspend(() => Effect.fail(new NoRun({ sessionId })))
  const send = (request: typeof steer | typeof followUp, payload: Payload.Steer) =>
    toRun(
      opened,
      (runId) => LinkOf.once((once) => LinkOf.called(request({ params: { runId }, payload, ...once }))),
      noRun
    )
  return {
    steer: (message, options) => send(steer, { message, ...options }),
    followUp: (message) => send(followUp, { message })
  }
}

const resume = (opened: Opened, reason: string | undefined) => {
  const notPaused = Effect.suspend(() => Effect.fail(new NotPaused()))
  const { resume } = opened.link.api.control
  return Effect.catchTag(
    toRun(
      opened,
      (runId) =>
        LinkOf.once((once) =>
          LinkOf.called(resume({ params: { runId }, payload: because(reason), ...once }))
        ),
      notPaused
    ),
    "RunNotReady",
    () => notPaused
  )
}

/** Sends to the run of the session: to the one that is followed, and if that is over, to the one that the server has. */
const toRun = <E>(
  opened: Opened,
  send: (runId: string) => Effect.Effect<void, ToRun>,
  without: Effect.Effect<void, E>
): Effect.Effect<void, ToRun | E> =>
  Effect.suspend(() => {
    const { current } = opened.following
    const found = Effect.flatMap(list(opened), (runs): Effect.Effect<void, ToRun | E> => {
      const going = runs.find(isGoing)
      return going === undefined ? without : send(going.runId)
    })
    return current === undefined ? found : Effect.catchTag(send(current), "RunOver", () => found)
  })
