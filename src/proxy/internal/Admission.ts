/**
 * Which requests a server lets through to its provider.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { ModelRequest } from "../../Provider.ts"
import { TaggedError } from "../../internal/errors.ts"

/**
 * The server does not ask the model that the request names.
 *
 * @category errors
 * @since 0.2.0
 */
export class ModelForbidden extends TaggedError<ModelForbidden>()("ModelForbidden", {
  /** The id of the model. */
  model: Schema.String,
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * The body is not a request.
 *
 * @category errors
 * @since 0.2.0
 */
export class InvalidBody extends TaggedError<InvalidBody>()("InvalidBody", {
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * The request for a model of the list, by the id of the list: `"gpt-5.4-mini"` stands for `"openai/gpt-5.4-mini"` if that is the only model of
 * this name. Members for vendors must name no model but those that the list has of this vendor, since they replace those of the provider.
 */
export const admit = (
  request: ModelRequest,
  models: ReadonlyArray<string>
): Result.Result<ModelRequest, ModelForbidden> => {
  const model = known(request.model, models)
  if (model === undefined) {
    const detail = `The server does not ask the model ${JSON.stringify(request.model.slice(0, 200))}`
    return Result.fail(new ModelForbidden({ model: request.model, detail }))
  }
  if (Object.keys(request.options.headers ?? {}).length > 0) {
    const detail = "The server takes no headers for its vendors from clients"
    return Result.fail(new ModelForbidden({ model: request.model, detail }))
  }
  const ofVendor = models.filter((id) => vendorOf(id) === vendorOf(model))
  const other = otherModel(request, ofVendor)
  if (other !== undefined) {
    const detail = `The server does not take ${JSON.stringify(other)} in members for vendors, which would name another model`
    return Result.fail(new ModelForbidden({ model: request.model, detail }))
  }
  return Result.succeed(model === request.model ? request : { ...request, model })
}

/** The provider in an id such as `openai/gpt-5`, which takes members for vendors. */
const vendorOf = (id: string): string => id.slice(0, id.indexOf("/") + 1)

const known = (model: string, models: ReadonlyArray<string>): string | undefined => {
  if (models.includes(model)) return model
  const found = models.filter((id) => id.endsWith(`/${model}`))
  return found.length === 1 && model !== "" ? found[0] : undefined
}

/** The name of a member for vendors that names a model which is not of the list, `undefined` if there is none. */
const otherModel = ({ options, tools }: ModelRequest, models: ReadonlyArray<string>): string | undefined => {
  const vendors = [options, ...(options.hostedTools ?? []), ...tools].map(({ vendor }) => vendor)
  return vendors.map((vendor) => naming(vendor, models)).find((name) => name !== undefined)
}

const naming = (value: unknown, models: ReadonlyArray<string>): string | undefined => {
  if (!Predicate.isObjectOrArray(value)) return undefined
  for (const [name, member] of Object.entries(value)) {
    if (names.test(name) && !(typeof member === "string" && known(member, models) !== undefined)) return name
    const inner = naming(member, models)
    if (inner !== undefined) return inner
  }
  return undefined
}

/** `model` of all vendors, `models`, `route` and `preset` of routers, `fallbacks` of Anthropic, `modelId` of Bedrock. */
const names = /^(?:\w*models?(?:[-_]?(?:ids?|names?|arn))?|\w*fallbacks?|route|preset)$/i
