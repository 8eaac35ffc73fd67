/** The guards of the proxy of models, each taken out. */
import type { Mutant } from "./Mutant.ts"

const server = "test/proxy/ModelStream.test.ts"
const client = "test/proxy/ProxyProvider.test.ts"

export const mutants: ReadonlyArray<Mutant> = [
  {
    fault: "takes the id of a model without its prefix",
    without: "clients ask the models of the list alone",
    file: "src/proxy/internal/ProxyHandling.ts",
    from: "return found.length === 1 &&",
    to: "return model === found[0] || true ? model :",
    test: server
  },
  {
    fault: "refuses members for vendors that name another model",
    without: "a member for vendors does not replace the model",
    file: "src/proxy/internal/ProxyHandling.ts",
    from: "if (other !== undefined) {",
    to: "if (false) {",
    test: server
  },
  {
    fault: "tells clients nothing of a defect, and no key",
    without: "a failure has no key of the server",
    file: "src/proxy/internal/EventFrame.ts",
    from: "JSON.stringify(encodeError(error), withoutKeys)",
    to: "JSON.stringify(encodeError(error))",
    test: server
  },
  {
    fault: "gives the same prefix and StreamTruncated for an answer that is cut at any byte",
    without: "an answer without its last event is cut",
    file: "src/proxy/internal/ProxyConnection.ts",
    from: "this.outgoing.decoder.isComplete() ?",
    to: "true ?",
    test: client
  },
  {
    fault: "reconnects before the first event alone",
    without: "no answer begins twice",
    file: "src/proxy/internal/ProxyConnection.ts",
    from: "hasBegun() ||",
    to: "",
    test: client
  },
  {
    fault: "does not follow a redirect",
    without: "the token goes to the server alone",
    file: "src/proxy/internal/ProxyConnection.ts",
    from: 'redirect: "manual" as const',
    to: 'redirect: "follow" as const',
    test: client
  }
]
