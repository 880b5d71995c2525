/** Organisations, members, invitations, workspaces, profiles, as services of rows. */
import type { AppParts } from './app-services.ts'

export function orgServices({ orgs }: AppParts) {
  return { orgs }
}
