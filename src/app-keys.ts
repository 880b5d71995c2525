/** API keys, as services of rows. */
import type { AppParts } from './app-services.ts'

export function keyServices({ keys }: AppParts) {
  return { keys }
}
