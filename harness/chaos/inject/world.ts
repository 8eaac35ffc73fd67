/**
 * The world of a run, with each call counted: real files and processes, the real clock, and a model behind HTTP.
 */
import { Clock, Context, Effect, FileSystem, Latch, Layer, PlatformError } from "effect"
import { HttpClient, HttpClientError, HttpClientResponse } from "effect/http"
import { ChildProcessSpawner } from "effect/process"
import { type Injector, planned, type World as Name } from "./Injector.ts"

/** Bodies of answers that are open. */
export interface Bodies {
  open: number
}

export const layer = (injector: Injector, answer: (body: string) => string, bodies: Bodies) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
      const clock = yield* Clock.Clock
      return Context.make(FileSystem.FileSystem, counted(injector, "files", "FileSystem", files)).pipe(
        Context.add(
          ChildProcessSpawner.ChildProcessSpawner,
          ChildProcessSpawner.make((command) =>
            Effect.map(platformCall(injector, "spawn", "spawn", spawner.spawn(command)), (handle) =>
              counted(injector, "spawn", "child", handle)
            )
          )
        ),
        Context.add(Clock.Clock, sleepless(injector, clock)),
        Context.add(HttpClient.HttpClient, http(injector, answer, bodies))
      )
    })
  )

// ───────────────────────── Files and processes

/** The same service, each of whose effects may go wrong; and so may those of the files that it opens. */
const counted = <T extends object>(injector: Injector, world: Name, label: string, service: T): T =>
  new Proxy(service, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target)
      const name = `${label}.${String(key)}`
      if (isPlatformEffect(value)) return platformCall(injector, world, name, value)
      if (typeof value !== "function") return value
      return (...parameters: ReadonlyArray<unknown>) => {
        const result: unknown = Reflect.apply(value, target, parameters)
        if (!isPlatformEffect(result)) return result
        return Effect.map(platformCall(injector, world, name, result), (made) =>
          FileSystem.isFile(made) ? counted(injector, world, "file", made) : made
        )
      }
    }
  })

const isPlatformEffect = (value: unknown): value is Effect.Effect<unknown, PlatformError.PlatformError> =>
  Effect.isEffect(value)

const platformCall = <A, R>(
  injector: Injector,
  world: Name,
  name: string,
  effect: Effect.Effect<A, PlatformError.PlatformError, R>
) => injector.call(world, name, effect, Effect.fail(inputOutput(name)))

const inputOutput = (method: string) =>
  PlatformError.systemError({
    _tag: "Unknown",
    module: "FileSystem",
    method,
    cause: new Error(`EIO: ${planned}`)
  })

// ───────────────────────── The clock

/** A sleep cannot fail: its error is that it does not sleep. */
const sleepless = (injector: Injector, clock: Clock.Clock): Clock.Clock => ({
  currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
  currentTimeMillis: clock.currentTimeMillis,
  currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
  currentTimeNanos: clock.currentTimeNanos,
  monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
  monotonicTimeNanos: clock.monotonicTimeNanos,
  sleep: (duration) => injector.call("clock", `sleep ${duration}`, clock.sleep(duration), Effect.void)
})

// ───────────────────────── HTTP

const http = (injector: Injector, answer: (body: string) => string, bodies: Bodies) =>
  HttpClient.make((request) => {
    const { body } = request
    const sent = body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""
    const heard = Effect.sync(() => answer(sent))
    const refused = new HttpClientError.HttpClientError({
      reason: new HttpClientError.TransportError({
        request,
        cause: Object.assign(new Error(`connect ECONNREFUSED ${planned}`), { code: "ECONNREFUSED" })
      })
    })
    return Effect.map(injector.call("http", "execute", heard, Effect.fail(refused)), (said) => {
      const headers = { "content-type": "text/event-stream" }
      return HttpClientResponse.fromWeb(request, new Response(pieces(injector, said, bodies), { headers }))
    })
  })

const parts = 5

/** A body in some pieces, each of which may be the last. A stream has no defects: it breaks, or ends too early. */
const pieces = (
  injector: Injector,
  text: string,
  bodies: Bodies
): ReadableStream<Uint8Array<ArrayBuffer>> => {
  const bytes = new TextEncoder().encode(text)
  const size = Math.ceil(bytes.length / parts)
  const cancelled = Latch.makeUnsafe(false)
  let at = 0
  let isOpen = true
  bodies.open++
  const close = () => {
    if (isOpen) bodies.open--
    isOpen = false
  }
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      pull: async (controller) => {
        const piece = bytes.slice(at, (at += size))
        const fail = () => {
          close()
          controller.error(new TypeError("terminated", { cause: new Error(`other side closed, ${planned}`) }))
        }
        const fault = injector.next("body", `piece ${at / size}`)
        if (fault === "error") return fail()
        if (fault === "hang") await Effect.runPromise(Effect.race(cancelled.await, injector.over.await))
        if (!isOpen) return
        if (piece.length > 0 && fault !== "die before") controller.enqueue(piece)
        if (fault === "die after" || fault === "error after") return fail()
        if (piece.length > 0 && fault !== "die before") return
        close()
        controller.close()
      },
      cancel: () => {
        close()
        cancelled.openUnsafe()
      }
    },
    { highWaterMark: 0 }
  )
}
