/** The OpenAPI document of a server: the routes of the API, and those beside them. */
import * as Effect from "effect/Effect"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { Api } from "../../api/Api.ts"
import type { Route } from "../Routes.ts"

/** The document. It is made when a client first reads it. */
export const document = (routes: ReadonlyArray<Route>): Route => {
  let text: string | undefined
  const handler = Effect.sync(() => {
    text ??= JSON.stringify(documentOf(routes))
    return HttpServerResponse.text(text, { contentType: "application/json" })
  })
  return { method: "GET", path: "/openapi.json", body: "none", handler }
}

/** The page that names the document. It needs no token. */
export const root = { method: "GET", path: "/" } as const

/** A layer that adds that page. */
export const layer = HttpRouter.add(root.method, root.path, () =>
  Effect.succeed(HttpServerResponse.text(words))
)

const words = `effect-agent: a server of agents.

GET /openapi.json  describes its routes in OpenAPI 3.1. Each route but this one and GET /health needs the header "Authorization: Bearer TOKEN".
`

const documentOf = (routes: ReadonlyArray<Route>): OpenApi.OpenAPISpec => {
  const spec = OpenApi.fromApi(Api)
  const paths = { ...spec.paths }
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, "{$1}")
    paths[path] = { ...paths[path], [methodOf(route)]: operationOf(route) }
  }
  return { ...spec, paths }
}

const methods = { GET: "get", POST: "post", DELETE: "delete" } as const

const methodOf = ({ method }: Route): OpenApi.OpenAPISpecMethodName => methods[method]

const operationOf = (route: Route): OpenApi.OpenAPISpecOperation => {
  const { body, description, method, path } = route
  const {
    query = [],
    responses = { 200: "application/json" },
    summary = `${method} ${path}`
  } = description ?? {}
  const text = { type: "string" }
  const inPath = Array.from(path.matchAll(/:(\w+)/g), ([, name = ""]) => name)
  return {
    operationId: `${methodOf(route)}${path.replace(/[^a-zA-Z]+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary,
    tags: ["routes"],
    security: [{ bearer: [] }],
    parameters: [
      ...inPath.map((name) => ({ name, in: "path" as const, schema: text, required: true })),
      ...query.map((name) => ({ name, in: "query" as const, schema: text, required: false }))
    ],
    ...(body === "json" ? { requestBody: { content: contentOf("application/json"), required: true } } : {}),
    responses: {
      ...Object.fromEntries(
        Object.entries(responses).map(([status, type]) => [
          status,
          { description: summary, ...(type === "" ? {} : { content: contentOf(type) }) }
        ])
      ),
      400: { description: "The request is not valid.", content: contentOf("application/problem+json") },
      401: { description: "The request needs a valid token.", content: contentOf("application/problem+json") }
    }
  }
}

const contentOf = (type: string) => ({
  [type]: { schema: type.endsWith("json") ? {} : { type: "string" } }
})
