/**
 * What a provider charges for beside the tokens, or takes more for the tokens for. No price of the catalog has it, so on a key that is not
 * the caller's own nobody could say what the call costs.
 */
import { fail } from '../../platform/errors.ts'
import type { HubRequest, NativeRequest } from '../providers/dialect.ts'
import type { Attempt } from '../routing/plan.ts'
import { editMembers } from '../wire/json-members.ts'
import { isClientRun } from '../wire/messages/hub-tools.ts'

type Fields = Readonly<Record<string, unknown>>

/** Fields of chat requests by which a provider searches, which it bills by the search. */
const searchNames = ['web_search_options', 'search_parameters', 'plugins'] as const
/** Tiers that cost the listed price, or less. */
const plainTiers: readonly unknown[] = [undefined, null, 'auto', 'default', 'standard', 'standard_only', 'flex']
/** Types of tools that the client runs itself. */
const clientRun: readonly unknown[] = [undefined, 'function', 'custom']

/**
 * A chat request for a route on the platform's key: without what would cost more than the tokens, which is named as dropped. The very same
 * object when there is no such thing. Throws `bad_request` for tools that the provider would run: an answer without them would be another.
 */
export function withoutSurcharges(hub: HubRequest, { byok }: Pick<Attempt, 'byok'>): HubRequest {
  if (byok || hub.operation !== 'chat') return hub
  refuseProviderTools(hub.body)
  const names = surchargedNames(hub.body)
  if (names.length === 0) return hub
  return { ...hub, body: without(hub.body, names), bytes: null, dropped: [...hub.dropped, ...names] }
}

/** The same of a request in the client's own format, with the names that were taken out. Tools of those formats are looked at where they are read. */
export function withoutNativeSurcharges(
  native: NativeRequest,
  { byok }: Pick<Attempt, 'byok'>,
): { readonly native: NativeRequest; readonly dropped: readonly string[] } {
  const names = byok ? none : surchargedNames(native.body)
  if (names.length === 0) return { native, dropped: none }
  const bytes = native.bytes === null ? null : editMembers(native.bytes, new Map(names.map(name => [name, undefined])))
  return { native: { ...native, body: without(native.body, names), bytes }, dropped: names }
}

const none: readonly string[] = Object.freeze([])

function surchargedNames(body: Fields): readonly string[] {
  let names: string[] | null = null
  for (const name of searchNames) {
    if (body[name] === undefined || body[name] === null) continue
    names ??= []
    names.push(name)
  }
  if (!plainTiers.includes(body['service_tier'])) names = [...(names ?? []), 'service_tier']
  return names ?? none
}

function without(body: Fields, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)))
}

function refuseProviderTools({ tools }: Fields): void {
  if (!Array.isArray(tools)) return
  for (const tool of tools) {
    const type: unknown = typeof tool === 'object' && tool !== null && 'type' in tool ? tool.type : undefined
    if (clientRun.includes(type) || (typeof type === 'string' && isClientRun(type))) continue
    const shown = typeof type === 'string' ? `"${type.slice(0, 64)}"` : 'of that type'
    throw fail('bad_request', {
      message: `The tool ${shown} would be run by the provider and charged beside the tokens, so it is for your own provider key only. Send or save one, or offer tools of type function.`,
    })
  }
}

/** Faster or nearer answers of the messages format, which its provider takes a multiple of the price for. Throws `bad_request`. */
export function refuseDearerMessages({ speed, inference_geo: geo }: Fields): void {
  const name =
    speed !== undefined && speed !== null && speed !== 'standard' ? 'speed' : geo !== undefined && geo !== null && geo !== 'global' ? 'inference_geo' : null
  if (name === null) return
  throw fail('bad_request', {
    message: `"${name}" makes the tokens dearer than they are listed, so it is for your own provider credential only. Forward or save one, or leave it out.`,
  })
}
