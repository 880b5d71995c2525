/**
 * Refuses options that a provider charges for beside the tokens or at a higher token price. The catalog has no price for them. On a key that is
 * not the caller's own, the cost of the call would be unknown.
 */
import { fail } from '../../../platform/errors.ts'
import { isObject, objectsOf } from '../../../platform/values/json.ts'
import { configOf, fieldOf } from '../../wire/gemini/fields.ts'
import { ownToolIn } from '../../wire/gemini/request/hub-tools.ts'
import { isClientRun } from '../../wire/messages/request/hub-tools.ts'

type Fields = Readonly<Record<string, unknown>>

/** The types of tools that the client runs itself. */
const clientRun: readonly unknown[] = ['function', 'custom']

/** Throws `bad_request` for tools that the provider would run. Dropping them would change the answer. */
export function refuseProviderTools({ tools }: Fields): void {
  if (!Array.isArray(tools)) return
  for (const tool of tools) {
    const type: unknown = isObject(tool) ? tool['type'] : undefined
    // A tool without a type is a function when it has one. With other members it is one of the provider's own tools.
    if (type === undefined && (!isObject(tool) || isObject(tool['function']) || isObject(tool['custom']))) continue
    if (clientRun.includes(type) || (typeof type === 'string' && isClientRun(type))) continue
    const shown = typeof type === 'string' ? `"${type.slice(0, 64)}"` : 'of that type'
    throw fail('bad_request', {
      message: `The tool ${shown} would be run by the provider and charged beside the tokens, so it is for your own provider key only. Send or save one, or offer tools of type function.`,
    })
  }
}

/**
 * The input items of the responses format that only carry content or offer tools of the client. `compaction` is the sealed summary that the
 * model made of earlier items. An `image_generation_call` is a picture of an earlier turn. Decision 0490 gives the reasons.
 */
const plainItems: readonly unknown[] = [
  ['message', 'reasoning', 'function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output'],
  ['tool_search_call', 'tool_search_output', 'additional_tools', 'compaction', 'image_generation_call'],
].flat()

/** Throws `bad_request` for an input item of the responses format that the gateway does not know. It may start something that the provider bills. */
export function refuseUnknownItems({ input }: Fields): void {
  if (!Array.isArray(input)) return
  for (let index = 0; index < input.length; index++) {
    const item: unknown = input[index]
    const type: unknown = isObject(item) ? item['type'] : undefined
    if (type === undefined || type === null || plainItems.includes(type)) continue
    const shown = typeof type === 'string' ? ` "${type.slice(0, 64)}"` : ''
    throw fail('bad_request', {
      message: `"input[${index}]" is an item of the type${shown}, which may have a cost beside the tokens, so it is for your own provider key only. Send or save one, or leave the item out.`,
    })
  }
}

/** Refuses options of the messages format for faster or nearer answers, for which the provider charges a multiple of the price. Throws `bad_request`. */
export function refuseDearerMessages({ speed, inference_geo: geo }: Fields): void {
  const name =
    speed !== undefined && speed !== null && speed !== 'standard' ? 'speed' : geo !== undefined && geo !== null && geo !== 'global' ? 'inference_geo' : null
  if (name === null) return
  throw fail('bad_request', {
    message: `"${name}" makes the tokens dearer than they are listed, so it is for your own provider credential only. Forward or save one, or leave it out.`,
  })
}

/** Refuses tools that Google itself runs, and answers that are not text, in Google's format. Both have prices of their own. Throws `bad_request`. */
export function refuseDearerGemini(body: Fields): void {
  for (const tool of objectsOf(body['tools'])) {
    const name = ownToolIn(tool)
    if (name !== null)
      throw fail('bad_request', {
        message: `The tool "${name.slice(0, 64)}" would be run by the provider and charged beside the tokens, so it is for your own provider key only. Send or save one, or offer functions.`,
      })
  }
  const config = configOf(body)
  const modalities = fieldOf(config, 'responseModalities')
  if (Array.isArray(modalities) && modalities.some(each => String(each).toUpperCase() !== 'TEXT'))
    throw fail('bad_request', {
      message:
        '"generationConfig.responseModalities": pictures and sound have prices of their own, so they are for your own provider key only. Ask for text, or send or save a key.',
    })
}
