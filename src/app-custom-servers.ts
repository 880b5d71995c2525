/** Organisations' own OpenAI-compatible servers. */
import type { AppParts } from './app-services.ts'
import { CustomServers } from './gateway/byok/custom-servers.ts'

export function createCustomServers({ db }: AppParts): CustomServers {
  return new CustomServers({ db })
}
