/**
 * The errors of AWS, whose names say more than their statuses: 403 is an expired token as well as a missing permission.
 * https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
 */

/** The name of an error without its namespace and its address: `x-amzn-errortype` is `ThrottlingException:http://…`. */
export const nameOf = (errorType: string | undefined): string | undefined =>
  errorType === undefined ? undefined : errorType.replace(/:.*$/s, "").replace(/^.*#/s, "").toLowerCase()

/** The status that a name of AWS means, `undefined` if none of the codes, which are in lower case, is one. */
export const statusOf = (codes: ReadonlyArray<string>, message: string): number | undefined => {
  const code = codes.find((code) => statuses.has(code))
  if (code === undefined) return undefined
  if (code === "accessdeniedexception" && /api key|authentication failed/i.test(message)) return 401
  if (code === "validationexception" && /model identifier is invalid/i.test(message)) return 404
  return statuses.get(code)
}

const statuses: ReadonlyMap<string, number> = new Map([
  ["accessdeniedexception", 403],
  ["expiredtoken", 401],
  ["expiredtokenexception", 401],
  ["incompletesignature", 401],
  ["incompletesignatureexception", 401],
  ["internalserverexception", 500],
  ["invalidclienttokenid", 401],
  ["invalidsignatureexception", 401],
  ["missingauthenticationtokenexception", 401],
  // The model failed, which another try may not.
  ["modelerrorexception", 500],
  ["modelnotreadyexception", 503],
  ["modelstreamerrorexception", 500],
  ["modeltimeoutexception", 408],
  ["resourcenotfoundexception", 404],
  ["servicequotaexceededexception", 402],
  ["serviceunavailableexception", 529],
  ["throttlingexception", 429],
  ["unrecognizedclientexception", 401],
  ["validationexception", 400]
])
