import { fail } from '../../../platform/errors.ts'
import { isClientRun } from '../messages/request/hub-tools.ts'

/** Matches the names of Gemini's own search tools. Their use costs money in addition to the tokens. */
const searches = /search|maps|retrieval/i

/**
 * Throws `bad_request` for tools in a chat request that the provider itself runs and charges for in addition to the tokens. Without the caller's own key,
 * the gateway would have to pay and could not know the cost of the call.
 */
export function refuseChargedTools(tools: unknown): void {
  if (!Array.isArray(tools)) return
  const found = tools.map(chargedName).find(name => name !== null)
  if (found === undefined) return
  throw fail('bad_request', {
    message: `The tool "${found?.slice(0, 64)}" would be charged beside the tokens, so it runs on your own provider credential only. Send one as "upstream_key", save one, or leave the tool out.`,
  })
}

/** Returns the name of a tool that its provider charges for; null for all other tools. */
function chargedName(tool: unknown): string | null {
  if (typeof tool !== 'object' || tool === null || Array.isArray(tool)) return null
  const { type } = tool as { readonly type?: unknown }
  if (type === undefined) return Object.keys(tool).find(name => searches.test(name)) ?? null
  return typeof type !== 'string' || type === 'function' || isClientRun(type) ? null : type
}
