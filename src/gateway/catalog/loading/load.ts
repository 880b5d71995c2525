import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { Clock } from '../../../platform/clock.ts'
import { type Config, ConfigError, settings } from '../../../platform/config.ts'
import { nearest } from '../../../platform/nearest.ts'
import { istDay } from '../../../platform/values/ist-time.ts'
import { whyNotIndia } from '../../providers/clouds/cloud-residency.ts'
import { speaksKind } from '../../providers/dialects.ts'
import { cloudDialects, type Provider } from '../../providers/provider.ts'
import { panelModel } from '../image-panel.ts'
import type { CatalogSnapshot, Model } from '../model.ts'
import { type RankingsFile, rankingsFile, toRankings } from '../rankings.ts'
import { virtualModels } from '../virtual-models.ts'
import { type CatalogPart, type PriceSources, toModel, toProvider } from './build-snapshot.ts'
import { type ModelEntry, modelsFile, type OperatorFile, operatorFile, type ProviderEntry, providersFile } from './file-schema.ts'
import { localServerIds } from './local-servers.ts'
import { onlySandbox, sandboxId, sandboxImageId } from './sandbox.ts'

/** The folder catalog/. The relative path is the same from src/gateway and dist/gateway. */
const dataFolder = new URL('../../../../catalog/', import.meta.url)
/** Maximum number of problems of a file in one error message. */
const issuesShownMax = 5

export interface CatalogSources {
  readonly config: Config
  /** Gives the date of prices that the operator's file states without a date. */
  readonly clock?: Clock
  /** Path of the operator's file. Null means that there is none. The default is CONFIG_FILE. */
  readonly operatorFile?: string | null
  /** The sandbox and local servers. Models whose id is already in the catalog are skipped. */
  readonly extraProviders?: readonly CatalogPart[]
}

/**
 * Returns one checked snapshot of the catalog. It reads catalog/*.json, applies the operator's file, adds keys and base URLs from the environment,
 * and adds the extra providers. Throws ConfigError that names the file, the place in the file and the expected value. Decision 0040 says why.
 */
export function loadCatalog(sources: CatalogSources): CatalogSnapshot {
  const { config } = sources
  const data = readData()
  const operator = readOperatorFile(sources)
  const providerEntries = overlay(
    data.providers,
    (operator.file.providers ?? []).filter(entry => !isFoundAtStart(entry)),
  )
  const modelEntries = overlay(data.models, datedRoutes(operator.file.models ?? [], sources.clock))
  const providers = new Map(providerEntries.map(entry => [entry.id, toProvider(entry, config)]))
  checkOperatorFile(operator, providerEntries, modelEntries, config)
  checkClouds(operator, providers, modelEntries)

  const parts = (sources.extraProviders ?? []).filter(part => !providers.has(part.provider.id))
  for (const part of parts) providers.set(part.provider.id, adjusted(part.provider, operator.file))
  const models = new Map<string, Model>()
  for (const entry of [...modelEntries, ...parts.flatMap(part => part.models)]) {
    const model = models.has(entry.id) ? null : toModel(entry, providers, data.sources)
    if (model) models.set(model.id, model)
  }
  const panel = panelModel(models, config.SERVICE_ID, onlySandbox(models) ? models.get(sandboxImageId) : undefined)
  if (panel) models.set(panel.id, panel)
  for (const model of virtualModels(models.values(), config.SERVICE_ID)) models.set(model.id, model)
  return { providers, models, rankings: toRankings(data.rankings, operator.file.rankings) }
}

interface Data {
  readonly providers: readonly ProviderEntry[]
  readonly models: readonly ModelEntry[]
  readonly sources: PriceSources
  readonly rankings: RankingsFile
}

function readData(): Data {
  const providers = readFile(fileURLToPath(new URL('providers.json', dataFolder)), providersFile)
  const models = readFile(fileURLToPath(new URL('models.json', dataFolder)), modelsFile)
  const images = readFile(fileURLToPath(new URL('images.json', dataFolder)), modelsFile)
  const rankings = readFile(fileURLToPath(new URL('rankings.json', dataFolder)), rankingsFile)
  return { providers: providers.providers, models: [...models.models, ...images.models], sources: { ...models.sources, ...images.sources }, rankings }
}

interface Operator {
  readonly path: string
  readonly file: OperatorFile
}

/** A missing file is an error only when its path was set explicitly. */
function readOperatorFile(sources: CatalogSources): Operator {
  const path = sources.operatorFile === undefined ? sources.config.CONFIG_FILE : sources.operatorFile
  if (path === null) return { path: '', file: {} }
  if (sources.operatorFile === undefined && path === settings.CONFIG_FILE.default && !existsSync(path)) return { path, file: {} }
  return { path, file: readFile(path, operatorFile) }
}

/** Returns a question with the nearest names of the schema, or nothing when no name is near. A name that is right at another place is not suggested. */
function nearNames({ keys, path }: z.core.$ZodIssueUnrecognizedKeys, schema: z.ZodType): string {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  const known = path.length === 0 ? Object.keys(json.properties ?? {}) : [...propertiesIn(json)]
  const meant = keys.flatMap(
    name =>
      nearest(
        name,
        known.filter(each => each !== name),
      ) ?? [],
  )
  return meant.length === 0 ? '' : `. Did you mean ${meant.map(name => `"${name}"`).join(', ')}?`
}

/** Returns the names of all properties of a JSON Schema, at any depth. */
function propertiesIn(schema: unknown): ReadonlySet<string> {
  if (typeof schema !== 'object' || schema === null) return new Set()
  return new Set(
    Object.entries(schema).flatMap(([name, value]) =>
      name === 'properties'
        ? [...Object.keys(value as object), ...Object.values(value as object).flatMap(each => [...propertiesIn(each)])]
        : [...propertiesIn(value)],
    ),
  )
}

function readFile<T>(path: string, schema: z.ZodType<T>): T {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw new ConfigError(
      `${path}: ${cause instanceof SyntaxError ? `not valid JSON: ${cause.message}` : 'cannot be read; CONFIG_FILE names the operator file.'}`,
      { cause },
    )
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issues = parsed.error.issues
    .slice(0, issuesShownMax)
    .map(issue => `${z.core.toDotPath(issue.path) || 'the file'}: ${issue.message}${issue.code === 'unrecognized_keys' ? nearNames(issue, schema) : ''}`)
  const more = parsed.error.issues.length - issues.length
  throw new ConfigError(`${path}: ${issues.join('; ')}${more > 0 ? `; and ${more} more` : ''}`)
}

/** Merges entries of the same id field by field. The later value wins. New ids are added at the end. */
function overlay<E extends { readonly id: string }>(base: readonly E[], over: readonly E[]): readonly E[] {
  const entries = new Map(base.map(entry => [entry.id, entry]))
  for (const entry of over) entries.set(entry.id, { ...entries.get(entry.id), ...entry })
  return [...entries.values()]
}

/** Returns whether the entry is a local server or the sandbox and has no base URL. The gateway finds such an address at start. */
const isFoundAtStart = (entry: ProviderEntry): boolean => entry.base_url === undefined && (localServerIds.includes(entry.id) || entry.id === sandboxId)

/** Applies the fields that the operator may set for a provider whose address is found at start: name and residency. */
function adjusted(provider: Provider, file: OperatorFile): Provider {
  const entry = file.providers?.find(({ id }) => id === provider.id)
  return { ...provider, name: entry?.name ?? provider.name, residency: entry?.residency ?? provider.residency }
}

function datedRoutes(models: readonly ModelEntry[], clock: Clock | undefined): readonly ModelEntry[] {
  if (!clock) return models
  const today = istDay(clock.nowMs())
  return models.map(model => (model.routes ? { ...model, routes: model.routes.map(route => ({ as_of: today, ...route })) } : model))
}

/** Checks what a schema cannot express: routes name known providers, prices are present, and each new provider has an address. */
function checkOperatorFile(operator: Operator, providers: readonly ProviderEntry[], models: readonly ModelEntry[], config: Config): void {
  const wrong = (place: string, what: string): ConfigError => new ConfigError(`${operator.path}: ${place}: ${what}`)
  const known = new Map(providers.map(entry => [entry.id, entry]))
  for (const [index, entry] of (operator.file.providers ?? []).entries()) {
    if (!isFoundAtStart(entry) && known.get(entry.id)?.base_url === undefined && config.providerEnv(entry.id).baseUrl === null)
      throw wrong(`providers[${index}].base_url`, `expected the base URL of "${entry.id}" (or its _BASE_URL variable)`)
  }
  const merged = new Map(models.map(entry => [entry.id, entry]))
  for (const [index, entry] of (operator.file.models ?? []).entries()) {
    const model = merged.get(entry.id) ?? entry
    if (!model.routes) throw wrong(`models[${index}].routes`, `expected at least one route, as "${entry.id}" is not in the catalog`)
    const seen = new Set<string>()
    for (const [at, route] of (entry.routes ?? []).entries()) {
      const place = `models[${index}].routes[${at}]`
      if (!known.has(route.provider)) throw wrong(`${place}.provider`, `"${route.provider}" is no provider; expected one of ${[...known.keys()].join(', ')}`)
      if (seen.has(route.provider)) throw wrong(`${place}.provider`, `"${route.provider}" already has a route of this model`)
      seen.add(route.provider)
      const provider = known.get(route.provider)
      const dialect = route.dialect ?? provider?.dialect ?? (provider?.cloud === undefined ? 'openai' : 'anthropic')
      if (!speaksKind(dialect, model.kind ?? 'chat'))
        throw wrong(`${place}.provider`, `"${route.provider}" speaks ${dialect}, which has no ${model.kind} API here`)
      const missing = missingPrice(model, route)
      if (missing) throw wrong(`${place}.${missing}`, 'expected a price in ₹ (0 is a price)')
      if (route.inr_per_thousand_searches !== undefined && route.input_inr_per_mtok !== undefined)
        throw wrong(`${place}.input_inr_per_mtok`, 'expected one price: by search or by token')
    }
    if (model.kind === 'image' && model.inr_per_image === undefined) throw wrong(`models[${index}].inr_per_image`, 'expected a price in ₹ (0 is a price)')
  }
}

/** Checks routes in clouds: the cloud serves their dialect and kind, and no route is stated to be in India that other regions may serve. */
function checkClouds({ path, file }: Operator, providers: ReadonlyMap<string, Provider>, models: readonly ModelEntry[]): void {
  const merged = new Map(models.map(entry => [entry.id, entry]))
  for (const [index, { id, routes = [] }] of (file.models ?? []).entries())
    for (const [at, route] of routes.entries()) {
      const provider = providers.get(route.provider)
      if (provider === undefined) continue
      const wrong = (field: string, what: string): ConfigError => new ConfigError(`${path}: models[${index}].routes[${at}].${field}: ${what}`)
      const { cloud } = provider
      const dialect = route.dialect ?? provider.dialect
      const kind = merged.get(id)?.kind ?? 'chat'
      if (cloud !== undefined && !cloudDialects[cloud].includes(dialect))
        throw wrong('dialect', `"${provider.id}" serves the dialects ${cloudDialects[cloud].join(' and ')} in the cloud ${cloud}, not ${dialect}`)
      if (cloud !== undefined && kind !== 'chat') throw wrong('provider', `"${provider.id}" serves chat models in the cloud ${cloud}, no model of kind ${kind}`)
      // The address of a provider that is not configured is not known yet.
      const why = route.residency === 'india' && provider.baseUrl !== '' ? whyNotIndia(provider, route.upstream_model ?? id) : null
      if (why !== null) throw wrong('residency', `the route ${why}, so it cannot be "india"`)
    }
}

/** Returns the name of the price field that a route of this kind lacks, or null. */
export function missingPrice(model: ModelEntry, route: NonNullable<ModelEntry['routes']>[number]): string | null {
  switch (model.kind ?? 'chat') {
    case 'chat':
      if (route.input_inr_per_mtok === undefined) return 'input_inr_per_mtok'
      return route.output_inr_per_mtok === undefined ? 'output_inr_per_mtok' : null
    case 'rerank':
      return route.inr_per_thousand_searches === undefined && route.input_inr_per_mtok === undefined ? 'inr_per_thousand_searches' : null
    case 'embedding':
    case 'moderation':
      return route.input_inr_per_mtok === undefined ? 'input_inr_per_mtok' : null
    case 'transcription':
      return route.inr_per_minute === undefined ? 'inr_per_minute' : null
    case 'speech':
      return route.inr_per_million_characters === undefined ? 'inr_per_million_characters' : null
    default:
      return null
  }
}
