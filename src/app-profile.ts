/** Coding profiles, as a service of rows. */
import type { AppParts } from './app-services.ts'
import { Profiles } from './gateway/orgs/profile.ts'

export function profileServices({ db, clock, catalog }: AppParts) {
  return { profiles: new Profiles({ db, clock, isModel: id => isModel(id, catalog.snapshot) }) }
}

/** What a provider lists changes, and keys come and go: of `provider/model` the provider must be known, the rest printable. */
const discoveredId = /^([a-z0-9][a-z0-9._-]{0,63})\/[\x21-\x7e]{1,200}$/

function isModel(id: string, { models, providers }: AppParts['catalog']['snapshot']): boolean {
  const provider = discoveredId.exec(id)?.[1]
  return models.has(id) || (provider !== undefined && providers.has(provider))
}
