import type { Config } from './config.ts'

/** BASE_URL, or where a gateway with these settings is reached on its own computer. */
export function publicBaseUrl(config: Config, port = config.PORT): string {
  return config.BASE_URL ?? `http://${hostForUrl(config.HOST)}:${port}`
}

function hostForUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
