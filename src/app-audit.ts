/** The audit trail, as a service of rows. */
import type { AppParts } from './app-services.ts'

export function auditServices({ audit }: AppParts) {
  return { audit }
}
