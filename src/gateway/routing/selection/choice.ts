/** Which rule chooses the model of a request, and how the reply's headers say what was chosen. */
import { type Preset, presetOf } from '../../catalog/virtual-models.ts'
import { brHeader, headerValue } from '../../wire/response-headers.ts'
import type { Plan, ResolveRequest } from '../plan.ts'
import { classified, failOpen, type Picked } from './pick-candidates.ts'

/** The virtual id that decides. `route: "best"` turns the balanced presets into auto:best; every other virtual id means what it says. */
export function presetFor({ modelId, fields }: Pick<ResolveRequest, 'modelId' | 'fields'>): Preset | undefined {
  const entry = presetOf(modelId)
  return entry?.preset === 'balanced' && fields.best ? presetOf('auto:best') : entry
}

/** Headers of a model that a preset has chosen. `auto` tells of both: its preset, and what was read in the prompt. */
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

/** Headers of `route: "best"` that found nothing better to do than to serve the named model as usual. */
export const failOpenHeaders = (request: ResolveRequest, plan: Plan): Plan['headers'] => bestHeaders(plan.model.id, classified(request), failOpen)

/** The preset that has chosen the model of a plan; undefined when the request named it. */
export function chooserOf(plan: Plan, request: ResolveRequest): Preset | undefined {
  const reason = plan.headers[brHeader.routeReason]
  return presetFor(request) ?? (reason === undefined || reason.startsWith(failOpen) ? undefined : presetOf('auto:best'))
}
