import type { ModelRequest } from "../../src/Provider.ts"
import type { Reason } from "../../src/ProviderError.ts"
import { adjuster, type Server } from "../../src/providers/internal/adjust.ts"
import { isReason } from "../../src/providers/Protocol.ts"
import type { Question } from "../../src/providers/internal/question.ts"

/** Writes requests as a provider does: by the rules of their models, then in a language. */
export const asked = (
  server: Server,
  encode: (question: Question) => string | Reason
): ((request: ModelRequest) => string | Reason) => {
  const adjust = adjuster(server)
  return (request) => {
    const question = adjust(request)
    return isReason(question) ? question : encode(question)
  }
}

/** The question that becomes of a request, which its model can be asked. */
export const questionOf = (server: Server, request: ModelRequest): Question => {
  const question = adjuster(server)(request)
  if (isReason(question)) throw question
  return question
}
