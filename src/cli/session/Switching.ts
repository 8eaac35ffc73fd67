/** Commands that go to another session, or to another place of this one. */
import * as Effect from "effect/Effect"
import * as Message from "../../Message.ts"
import type { Session as Listed } from "../../api/Payload.ts"
import * as SessionIds from "../agent/Sessions.ts"
import * as TaskList from "../agent/TaskList.ts"
import { UsageError } from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Contents from "./Contents.ts"
import * as FileCommands from "./FileCommands.ts"
import * as Markdown from "./Markdown.ts"
import * as Panels from "./Panel.ts"
import type { Face } from "./Face.ts"
import type { Session } from "./Session.ts"
import { Transcript, promptLines } from "./Transcript.ts"

/** The most sessions of a list. */
const most = 200
/** How many prompts and answers a session that is opened again shows. */
const shown = 3

/** Puts the session in the place of another one. */
const become = (session: Session, id: string, isMade: boolean): void => {
  session.id = id
  session.isMade = isMade
  session.isUsed = isMade
  session.transcript = new Transcript(session.theme)
  session.waiting = []
  session.asking.clear()
  session.last = undefined
  session.replaces = undefined
  session.context = 0
  session.before = undefined
  session.name = undefined
  session.tasks = TaskList.empty
}

/** Shows the last prompts and answers of a stored session, and continues what is open in it. */
export const open = Effect.fnUntraced(function* (session: Session, id: string) {
  become(session, id, true)
  const { agent, newest, runs } = session.place
  const contents = yield* runs.sessions.get(id)
  session.name = contents.session.name
  session.tasks = TaskList.ofShown(contents.entries)
  const messages = yield* Contents.messages(runs, id)
  if (agent !== undefined) yield* agent(id)
  const active = yield* runs.active(id)
  const begun = messages.flatMap((message, index) => (Contents.isPrompt(message) ? [index] : []))
  // A run that works shows its own events.
  const end = active === undefined ? messages.length : begun.at(-1)
  const from = begun.at(-shown) ?? 0
  const width = session.face.width()
  const { theme } = session
  /** Marks are left out, and all of it is dim. */
  const plain = { ...theme, style: (_style: unknown, text: string) => text }
  session.before = Contents.usageOf(messages)
  session.context = Contents.contextOf(messages)
  session.face.print(
    messages.slice(from, end).flatMap((message) => {
      if (Contents.isPrompt(message)) return promptLines(Contents.textOf(message), theme, width)
      if (message.role !== "assistant") return []
      const text = Message.textOf(message).trim()
      return text === "" ? [] : Markdown.all(text, plain, width).map((line) => theme.style("dim", line))
    })
  )
  const last = messages.findLast(Contents.isPrompt)
  if (last !== undefined)
    session.last = { text: Contents.textOf(last), messageId: last.id, failed: messages.at(-1) === last }
  session.model = Contents.modelOf(contents) ?? session.model
  if (active !== undefined) session.do(session.follow(active, Date.now()))
  else {
    const run = yield* newest(id)
    if (run?.status === "suspended" && run.resumedBy === undefined) session.asking.reopen(run)
  }
  session.face.changed()
})

/** The id of the only session whose id begins so. */
export const found = Effect.fnUntraced(function* (session: Session, text: string) {
  const { items } = yield* session.place.runs.sessions.list({ limit: 999, query: text })
  const matching = items.filter(
    ({ sessionId }) => sessionId === text || SessionIds.isSession(sessionId, text)
  )
  const exact = matching.find(({ sessionId }) => sessionId === text)
  if (exact !== undefined) return exact.sessionId
  if (text.length < 4) return yield* new UsageError({ detail: "Give 4 or more characters of the id." })
  return yield* SessionIds.only(
    "session",
    text,
    matching.map(({ sessionId, title }) => ({ id: sessionId, title }))
  )
})

const list = (session: Session, items: ReadonlyArray<Listed>, pick: (id: string) => void): void =>
  session.show(
    Panels.list({
      title: "Sessions",
      items: items.map(({ modified, sessionId, title }) => ({
        value: sessionId,
        label: `${sessionId.slice(0, 8)}  ${ageOf(Date.now() - modified)}  ${title}`
      })),
      pick: (id) => {
        session.hide()
        pick(id)
      },
      cancel: () => session.hide()
    })
  )

const ageOf = (ms: number): string => {
  const minutes = Math.max(0, Math.floor(ms / 60_000))
  if (minutes < 60) return `${minutes} min`
  return minutes < 2_880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} days`
}

export const sessions = Effect.fnUntraced(function* (session: Session) {
  const { items } = yield* session.place.runs.sessions.list({ limit: most })
  list(session, items, (id) => {
    if (session.isWorking) session.say("Not while it works. Esc stops it.")
    else session.do(open(session, id))
  })
})

export const resume = Effect.fnUntraced(function* (session: Session, args: string) {
  if (args === "") return yield* sessions(session)
  yield* open(session, yield* found(session, args))
})

export const fresh = (session: Session) =>
  Effect.sync(() => {
    become(session, crypto.randomUUID(), false)
    session.say(`New session ${session.id8}.`)
  })

export const fork = Effect.fnUntraced(function* (session: Session) {
  if (!session.isMade) return session.say("There is nothing to copy.")
  const before = session.id8
  const id = yield* session.place.runs.sessions.fork(session.id, {})
  const { context, last, name, tasks, usage } = session
  become(session, id, true)
  Object.assign(session, { before: usage, context, last, name, tasks })
  session.say(`Forked: ${before} → ${session.id8}.`)
})

export const name = Effect.fnUntraced(function* (session: Session, args: string) {
  if (args === "") return session.say("Give a name: /name TEXT")
  if (session.isMade) yield* session.place.runs.sessions.update(session.id, { name: args })
  session.name = args
  session.say(`Name: ${Inert.line(args)}`)
})

export const rewind = Effect.fnUntraced(function* (session: Session, args: string, room: Face) {
  const messages = session.isMade ? yield* Contents.messages(session.place.runs, session.id) : []
  const prompts = Contents.prompts(messages)
  if (prompts.length === 0) return session.say("There is no prompt to go back to.")
  const back = (id: string) => {
    const prompt = prompts.find((one) => one.id === id)
    if (prompt === undefined) return
    session.replaces = prompt.id
    room.fill(prompt.text)
    session.note(
      `The next prompt takes the place of "${Inert.line(prompt.text, 60)}" and what came after it.`
    )
  }
  const choose = (id: string) =>
    session.show(
      Panels.keys({
        title: [`Back to "${Inert.line(prompts.find((one) => one.id === id)?.text ?? "", 60)}"`],
        keys: [
          [
            "1",
            "files and conversation",
            () =>
              done(() => {
                back(id)
                session.do(FileCommands.backTo(session, id))
              })
          ],
          ["2", "conversation", () => done(() => back(id))],
          ["3", "files", () => done(() => void session.do(FileCommands.backTo(session, id)))]
        ],
        cancel: () => session.hide()
      })
    )
  const done = (act: () => void) => {
    session.hide()
    act()
  }
  if (args !== "") {
    const prompt = prompts[Number(args) - 1]
    return prompt === undefined ? session.say(`There is no prompt ${args}.`) : choose(prompt.id)
  }
  session.show(
    Panels.list({
      title: "Back to the prompt",
      items: prompts.map(({ id, text }, index) => ({
        value: id,
        label: `${index + 1}  ${Inert.line(text, 200)}`
      })),
      pick: choose,
      cancel: () => session.hide()
    })
  )
})
