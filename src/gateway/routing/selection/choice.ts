/** Decides which preset chooses the model of a request, and makes the reply headers that explain the choice. */
import { type Preset, presetOf } from '../../catalog/virtual-models.ts'
import { brHeader, headerValue } from '../../wire/response-headers.ts'
import type { Plan, ResolveRequest } from '../plan.ts'
import { classified, failOpen, type Picked } from './pick-candidates.ts'

/**
 * Returns the preset that chooses the model, if there is one. With `route: "best"`, auto:best replaces the balanced presets. Other virtual ids keep
 * their preset.
 */
export function presetFor({ modelId, fields }: Pick<ResolveRequest, 'modelId' | 'fields'>): Preset | undefined {
  const entry = presetOf(modelId)
  return entry?.preset === 'balanced' && fields.best ? presetOf('auto:best') : entry
}

/** Returns the headers for a model that a preset chose. The id `auto` gets the headers of its preset and those about the prompt. */
export function presetHeaders(entry: Preset, picked: Picked, { modelId, fields }: ResolveRequest): Plan['headers'] {
  const auto = modelId.startsWith('auto')
    ? { [brHeader.autoPreset]: entry.preset, [brHeader.autoModel]: headerValue(picked.modelId), [brHeader.autoReason]: picked.reason }
    : {}
  const tellsOfPrompt = picked.classified !== null && (entry.preset === 'best' || fields.best || modelId === 'auto')
  return tellsOfPrompt ? { ...auto, ...bestHeaders(picked.modelId, picked.classified, picked.reason) } : auto
}

const bestHeaders = (modelId: string, { capability, cue }: NonNullable<Picked['classified']>, reason: string): Plan['headers'] => ({
  [brHeader.route]: 'best',
  [brHeader.routeCapability]: capability,
  [brHeader.routeModel]: headerValue(modelId),
  [brHeader.routeReason]: `${reason}; ${cue}`,
})

/** Returns the headers for a request with `route: "best"` when no better model was found. The gateway then serves the named model as usual. */
export const failOpenHeaders = (request: ResolveRequest, plan: Plan): Plan['headers'] => bestHeaders(plan.model.id, classified(request), failOpen)

/** Returns the preset that chose the model of a plan. Undefined when the request named the model. */
export function chooserOf(plan: Plan, request: ResolveRequest): Preset | undefined {
  const reason = plan.headers[brHeader.routeReason]
  return presetFor(request) ?? (reason === undefined || reason.startsWith(failOpen) ? undefined : presetOf('auto:best'))
}
