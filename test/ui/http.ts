/** A server on the loopback address. */
import { NodeHttpServer } from "@effect/platform-node"
import { Context, Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"

/** The address of a server with the routes, which ends with the scope. */
export const serve = (routes: Layer.Layer<never, never, HttpRouter.HttpRouter>) =>
  listen(HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }))

/** The address of a server. */
export const listen = <A>(layer: Layer.Layer<A, never, HttpServer.HttpServer>) =>
  Effect.gen(function* () {
    const node = NodeHttpServer.layer(() => createServer(), {
      port: 0,
      host: "127.0.0.1",
      gracefulShutdownTimeout: 100
    })
    const context = yield* Layer.build(Layer.provideMerge(layer, node))
    const { address } = Context.get(context, HttpServer.HttpServer)
    return "port" in address ? `http://127.0.0.1:${address.port}` : ""
  })
