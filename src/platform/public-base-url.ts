import type { Config } from './config.ts'

/** Returns BASE_URL, or the URL at which a gateway with these settings can be reached from its own machine. */
export function publicBaseUrl(config: Config, port = config.PORT): string {
  return config.BASE_URL ?? `http://${hostForUrl(config.HOST)}:${port}`
}

function hostForUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
