import { fail } from '../../../platform/errors.ts'
import { isClientRun } from '../messages/request/hub-tools.ts'

/** Names of tools of Gemini's own that search, which costs beside the tokens. */
const searches = /search|maps|retrieval/i

/**
 * Throws `bad_request` for tools of a provider's own in a chat request that the provider would run and charge for beside the tokens: on a
 * key that is not the caller's own nobody could say what the call costs.
 */
export function refuseChargedTools(tools: unknown): void {
  if (!Array.isArray(tools)) return
  const found = tools.map(chargedName).find(name => name !== null)
  if (found === undefined) return
  throw fail('bad_request', {
    message: `The tool "${found?.slice(0, 64)}" would be charged beside the tokens, so it runs on your own provider credential only. Send one as "upstream_key", save one, or leave the tool out.`,
  })
}

/** What a tool is called that its provider charges for; null for all others. */
function chargedName(tool: unknown): string | null {
  if (typeof tool !== 'object' || tool === null || Array.isArray(tool)) return null
  const { type } = tool as { readonly type?: unknown }
  if (type === undefined) return Object.keys(tool).find(name => searches.test(name)) ?? null
  return typeof type !== 'string' || type === 'function' || isClientRun(type) ? null : type
}
