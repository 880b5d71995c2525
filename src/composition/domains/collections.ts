import { type CollectionServices, createCollections } from '../../gateway/collections/create-collections.ts'
import type { InferenceDeps } from '../../gateway/inference/deps.ts'
import { isProbed, probeStep } from '../../gateway/inference/probe/probe.ts'
import type { Chains } from '../../gateway/routing/chains.ts'
import type { AppParts } from '../parts.ts'

/** Connects collections to inference and to founders. Inference makes their canary calls. Founders share the places for canaries. */
export function collectionServices(parts: AppParts, chains: Chains, inference: InferenceDeps): CollectionServices {
  const { config, catalog, founders } = parts
  const kinds = { kindOf: (modelId: string) => catalog.snapshot.models.get(modelId)?.kind ?? null }
  const probes = { ...inference, ...kinds, probeTimeoutMs: config.MONITOR_TIMEOUT_S * 1000 }
  return createCollections({
    ...parts,
    chains,
    holderOf: orgId => founders.numberOf(orgId),
    probeStep: (probed, signal) => probeStep(probed, signal, probes),
    isProbed: (modelId, step) => isProbed(modelId, step.model, kinds),
  })
}
