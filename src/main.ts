import { banner } from './cli/operator/banner.ts'
import { startGateway } from './composition/serve.ts'
import { ConfigError, loadConfig } from './platform/config.ts'

/** The process entry: configuration, start, signals. */
async function main(): Promise<void> {
  const gateway = await startGateway(loadConfig(), { onGivenUp: error => end(error.message) })
  process.stdout.write(banner(gateway))
  const stop = (): void => {
    void gateway.stop().then(
      () => process.exit(0),
      error => {
        process.stderr.write(`stopping failed: ${error instanceof Error ? error.message : String(error)}\n`)
        process.exit(1)
      },
    )
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}

/** Says why and ends the process, so that whoever supervises it starts a new one. */
function end(error: unknown): void {
  process.stderr.write(`brigade: ${wordsOf(error)}\n`)
  process.exit(1)
}

/** What a person can mend is said without a stack. */
function wordsOf(error: unknown): string {
  if (error instanceof ConfigError) return error.message
  if (!(error instanceof Error)) return String(error)
  const { code, address, port } = error as NodeJS.ErrnoException & { readonly address?: string; readonly port?: number }
  if (code === 'EADDRINUSE') return `port ${port} at ${address} is taken, perhaps by another Brigade. Stop that, or set PORT.`
  if (code === 'EACCES' && port !== undefined) return `this user may not listen on port ${port}. Set PORT to one above 1023.`
  if (code === 'EADDRNOTAVAIL') return `this machine has no address ${address}. Set HOST to one that it has.`
  return error.stack ?? error.message
}

main().catch(end)
