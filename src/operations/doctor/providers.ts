import { isSandbox, sandboxState } from '../../gateway/catalog/loading/sandbox.ts'
import type { CatalogSnapshot, Route } from '../../gateway/catalog/model.ts'
import type { Provider } from '../../gateway/providers/provider.ts'
import type { Config } from '../../platform/config.ts'
import { takesRealMoney } from './billing.ts'
import type { Finding } from './finding.ts'

/**
 * Reports the providers with platform keys. Also reports settings that have no effect: a provider with only an address or only a key, a key that no
 * request can use, and a panel judge that cannot read images.
 */
export function checkProviders(snapshot: CatalogSnapshot, config: Config): Finding[] {
  const { providers, models } = snapshot
  const routes = [...models.values()].flatMap(model => (model.kind === 'virtual' ? [] : model.routes))
  const slips = [...providers.values()].flatMap(provider => {
    const detail = isSandbox(provider) ? sandboxSlip(provider, config) : provider.userGiven ? null : slipOf(provider, routes, config)
    return detail === null ? [] : [{ what: `provider ${provider.id}`, state: 'warning' as const, detail }]
  })
  const { isOn, why, turnOn } = sandboxState(config, snapshot)
  const sandbox: Finding = { what: 'sandbox', state: 'ok', detail: isOn ? `is on, ${why}` : `is off, ${why}. ${turnOn}` }
  return [summary([...providers.values()]), sandbox, ...slips, ...judge(models, config)]
}

function summary(providers: readonly Provider[]): Finding {
  const configured = providers.filter(provider => provider.configured)
  if (configured.length === 0)
    return { what: 'providers', state: 'warning', detail: 'none is configured: set <PROVIDER>_API_KEY, or SANDBOX=on to try things out' }
  return { what: 'providers', state: 'ok', detail: configured.map(provider => provider.id).join(', ') }
}

function sandboxSlip({ configured }: Provider, config: Config): string | null {
  return configured && takesRealMoney(config) ? 'answers, and takes credit that was paid for with real money: set SANDBOX=off' : null
}

function slipOf(provider: Provider, routes: readonly Route[], config: Config): string | null {
  const { id, baseUrl, platformKey, keyShape, configured, missing, place, usesIdentity } = provider
  const prefix = id.toUpperCase().replace(/[^A-Z0-9]/g, '_')
  const isBegun = platformKey !== null || place !== undefined || usesIdentity === true
  if (missing !== undefined && isBegun) return `is not configured: set ${missing.join(' and ')}`
  if (configured && provider.untried === true) return 'serves calls, and Brigade was never tried against the real service. Try it: brigade doctor --probe'
  if (platformKey !== null && baseUrl === '') return `has a key and no address, so it serves nobody: set ${prefix}_BASE_URL`
  if (!configured && config.providerEnv(id).baseUrl !== null) return `has an address and no key, so it serves nobody: set ${prefix}_API_KEY`
  const own = routes.filter(route => route.provider.id === id)
  if (!configured && own.some(({ price, byokOnly }) => price.source === 'operator file' && !byokOnly))
    return `serves models of the operator's file and has no key, so callers need keys of their own: set ${prefix}_API_KEY, or "auth": "none" in the file`
  if (platformKey === null) return null
  if (keyShape !== null && config.providerEnv(id).baseUrl === null && !new RegExp(keyShape).test(platformKey.reveal()))
    return `has a key that does not look like one of ${provider.name}: check it`
  if (own.every(({ byokOnly }) => byokOnly))
    return `has a key that serves nobody: its models run on keys of the callers only. Save it for an organisation (PUT /me/byok/${id})`
  return null
}

/** Checks that the judge of the image panel is a preset or a chat model that reads images. */
function judge(models: CatalogSnapshot['models'], { PANEL_JUDGE: id }: Config): Finding[] {
  const model = models.get(id)
  if (model?.kind === 'virtual' || (model?.kind === 'chat' && model.modalities.includes('image'))) return []
  const why = model === undefined ? 'is no model of the catalog' : 'is no chat model that sees images'
  return [{ what: 'PANEL_JUDGE', state: 'warning', detail: `"${id}" ${why}, so the panel gives its first picture unjudged` }]
}
