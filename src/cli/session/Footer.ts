/** The lines around the input: messages that wait, the work, and the state of the session. */
import * as ModelTable from "../agent/ModelTable.ts"
import * as ModelChoice from "../agent/ModelChoice.ts"
import type * as TaskList from "../agent/TaskList.ts"
import * as Inert from "../terminal/Inert.ts"
import type { Session } from "./Session.ts"
import type { Theme } from "./Theme.ts"
import { shortened } from "./Transcript.ts"

/** The messages that wait, each on a line. */
export const waiting = (session: Session, width: number): ReadonlyArray<string> =>
  session.waiting.map(({ how, text }) => shortened(`${how}: ${Inert.line(text)}`, width))

/** The work, and the meaning of Esc and Enter meanwhile. */
export const status = (session: Session, now: number, width: number): ReadonlyArray<string> => {
  const { isLost, place, run, settings, work } = session
  if (isLost) return ["Connection lost"]
  if (work !== undefined) return [shortened(`${work.words} ${secondsOf(now - work.from)} · Esc stops`, width)]
  if (run === undefined) return []
  const { retry } = run
  const hook = place.runningHook()
  if (hook !== undefined && now - hook.at > 1_000)
    return [shortened(`Hook ${Inert.line(hook.command, 60)} ${secondsOf(now - hook.at)} · Esc stops`, width)]
  if (retry !== undefined) {
    const left = Math.max(0, Math.ceil((retry.from + retry.delay - now) / 1000))
    return [
      shortened(`Trying again in ${left} s (${retry.count}) · ${Inert.line(retry.words)}`, width - 13) +
        " · Esc stops"
    ]
  }
  const keys =
    settings.enter === "queue" ? "Enter queues · Alt-Enter steers" : "Enter steers · Alt-Enter queues"
  return [shortened(`Working ${secondsOf(now - run.from)} · Esc stops · ${keys}`, width)]
}

const secondsOf = (ms: number): string => `${Math.max(0, Math.floor(ms / 1000))} s`

/** The mode, the model, the part of the context that is used, the cost, and the session. */
export const line = (session: Session, width: number): string => {
  const parts = [session.mode, session.model, contextOf(session), costOf(session), session.id8]
  return session.theme.style("dim", shortened(parts.map((part) => Inert.line(part)).join(" · "), width))
}

/** The context windows of models that were looked up: each frame needs one. */
const windows = new Map<string, number | undefined>()

/** The context window of a model, `undefined` if it is not known. */
export const windowOf = (model: string): number | undefined => {
  if (!windows.has(model)) {
    const vendor = ModelChoice.vendorOf(model)
    windows.set(model, ModelTable.ruleOf(vendor, model.slice(vendor.length + 1))?.contextWindow)
  }
  return windows.get(model)
}

const contextOf = ({ context, model }: Session): string => {
  const window = windowOf(model)
  if (context === 0) return "0 % context"
  return window === undefined ? `? % context` : `${Math.round((100 * context) / window)} % context`
}

const costOf = ({ usage: { cost, total } }: Session): string => {
  return cost === undefined ? `${short(total)} tokens` : `$${cost.toFixed(4)}`
}

const short = (count: number): string => {
  if (count < 1_000) return String(count)
  return count < 10_000 ? `${(count / 1_000).toFixed(1)}k` : `${Math.round(count / 1_000)}k`
}

/** The task list of the model; of a long one the tasks that are done are counted. */
export const tasks = ({ tasks, theme }: Session, width: number): ReadonlyArray<string> => {
  if (tasks.length === 0) return []
  const done = tasks.filter(({ status }) => status === "done").length
  const shown = tasks.length > maxTasks ? tasks.filter(({ status }) => status !== "done") : tasks
  const counted = shown.length < tasks.length ? [`  ${theme.signs.ended} ${done} done`] : []
  const lines = [...counted, ...taskLines(shown, theme)]
  return [taskCount(tasks), ...lines].map((line) => fitted(line, width))
}

const maxTasks = 8

export const taskCount = (tasks: TaskList.TaskList): string =>
  `Tasks ${tasks.filter(({ status }) => status === "done").length}/${tasks.length}`

/** A line for each task, with the sign of its state. */
export const taskLines = (tasks: TaskList.TaskList, { signs }: Theme): ReadonlyArray<string> =>
  tasks.map(({ status, text }) => {
    const sign = { done: signs.ended, active: signs.active, pending: signs.open, cancelled: signs.failed }[
      status
    ]
    return `  ${sign} ${Inert.line(text)}`
  })

const fitted = (line: string, width: number): string => {
  const text = line.trimStart()
  const indent = line.slice(0, line.length - text.length)
  return indent + shortened(text, width - indent.length)
}
