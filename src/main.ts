import { banner } from './cli/banner.ts'
import { ConfigError, loadConfig } from './platform/config.ts'
import { startGateway } from './serve.ts'

/** The process entry: configuration, start, signals. */
async function main(): Promise<void> {
  const gateway = await startGateway(loadConfig())
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

main().catch(error => {
  // What a person can mend is said without a stack.
  process.stderr.write(
    error instanceof ConfigError ? `brigade: ${error.message}\n` : `brigade: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  )
  process.exit(1)
})
