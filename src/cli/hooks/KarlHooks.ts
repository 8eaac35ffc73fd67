/** The modules in Karl's folders: functions that Karl calls before and after a task and a tool, and after an error. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { pathToFileURL } from "node:url"
import type * as Hook from "../../Hook.ts"
import * as Message from "../../Message.ts"
import * as HookFile from "./HookFile.ts"
import * as Screen from "../terminal/Screen.ts"

type Point = "pre-task" | "post-task" | "pre-tool" | "post-tool" | "on-error"

interface Module {
  readonly file: string
  readonly hooks: object
}

/** The longest time of a function. */
const patience = "60 seconds"

/** Loads the modules, and makes hooks that call their functions. A module that cannot be loaded is a line on the screen. */
export const load = Effect.fnUntraced(function* (files: ReadonlyArray<string>, model: string) {
  const services = yield* Effect.context<Screen.Screen>()
  const loaded = yield* Effect.forEach(files, loadOne)
  const modules = loaded.flat()
  if (modules.length === 0) return []
  const call = (point: Point, event: object) =>
    Effect.provideContext(
      Effect.forEach(modules, (module) => callOne(module, point, event), { discard: true }),
      services
    )
  return hooksOf(call, model)
})

const loadOne = (file: string) =>
  Effect.tryPromise(() => import(pathToFileURL(file).href)).pipe(
    Effect.map((module: { readonly default?: unknown }): ReadonlyArray<Module> => {
      const hooks: unknown = module.default ?? module
      return Predicate.isObject(hooks) ? [{ file, hooks }] : []
    }),
    Effect.catch(({ cause }) =>
      Effect.as(Screen.complain(`The hooks of ${file} cannot be loaded: ${textOfFailure(cause)}`), [])
    )
  )

const textOfFailure = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown))

const callOne = ({ file, hooks }: Module, point: Point, event: object) => {
  const handler: unknown = Predicate.hasProperty(hooks, point) ? hooks[point] : undefined
  if (typeof handler !== "function") return Effect.void
  return Effect.tryPromise(async () => {
    await handler(event)
  }).pipe(
    Effect.timeout(patience),
    Effect.catch((error) =>
      Screen.complain(
        `The hook ${point} of ${file} failed: ${textOfFailure("cause" in error && error.cause !== undefined ? error.cause : error)}`
      )
    )
  )
}

const hooksOf = (
  call: (point: Point, event: object) => Effect.Effect<void>,
  name: string
): ReadonlyArray<Hook.Runnable> => {
  const slash = name.indexOf("/")
  const of = { index: 0, attempt: 1, model: name.slice(slash + 1), provider: name.slice(0, slash) }
  const tasks = new Map<string, string>()
  const textOf = (content: ReadonlyArray<{ readonly type: string }>) =>
    content
      .flatMap((block) => ("text" in block && typeof block.text === "string" ? [block.text] : []))
      .join("\n")
  return [
    HookFile.at("beforeExecution", ({ prompts, runId }) => {
      const task = prompts.map(Message.textOf).join("\n")
      tasks.set(runId, task)
      return call("pre-task", { task, ...of })
    }),
    HookFile.at("beforeTool", ({ call: { name, params } }) =>
      call("pre-tool", { tool: name, input: params ?? {} })
    ),
    HookFile.at("afterTool", ({ call: { name, params }, isError, result }) => {
      const output = textOf(result.content)
      const event = { tool: name, input: params ?? {}, output, success: !isError }
      return isError
        ? Effect.andThen(
            call("post-tool", { ...event, error: output }),
            call("on-error", { scope: "tool", error: output, tool: name })
          )
        : call("post-tool", event)
    }),
    HookFile.at("afterExecution", ({ error, message, runId }) => {
      const task = { task: tasks.get(runId) ?? "", ...of }
      tasks.delete(runId)
      return error === undefined
        ? call("post-task", { ...task, result: message === undefined ? "" : Message.textOf(message) })
        : Effect.andThen(
            call("on-error", { scope: "task", error: error.message }),
            call("post-task", { ...task, error: error.message })
          )
    })
  ]
}
