/** Sign-in, as services of rows. */
import type { AppParts } from './app-services.ts'

export function accessServices({ sessions }: AppParts) {
  return { sessions }
}
