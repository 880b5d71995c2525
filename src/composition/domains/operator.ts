/** Constructs the services of the rows of operators. */
import { probeKey } from '../../gateway/byok/probe.ts'
import { DoctorRuns } from '../../gateway/operator/doctor-runs.ts'
import type { OperatorRowServices } from '../../gateway/operator/operator-endpoints.ts'
import { InstallationOrgs } from '../../gateway/operator/organisations.ts'
import { PlatformKeys } from '../../gateway/operator/platform-keys.ts'
import type { Maintenance } from '../../gateway/routing/outages/maintenance.ts'
import { OperatorWebhooks } from '../../gateway/webhooks/operator-webhooks.ts'
import type { Finding } from '../../operations/doctor/finding.ts'
import type { AppParts } from '../parts.ts'

export interface OperatorParts {
  readonly maintenance: Maintenance
  /** Runs the doctor. It is called after the gateway is complete. */
  readonly diagnose: () => Promise<readonly Finding[]>
}

export function operatorRowServices({ db, clock, config, catalog, outbound, mail }: AppParts, { maintenance, diagnose }: OperatorParts): OperatorRowServices {
  return {
    operatorDoctor: new DoctorRuns({ clock, diagnose }),
    installationOrgs: new InstallationOrgs({ db, clock }),
    maintenance,
    platformKeys: new PlatformKeys({
      clock,
      providers: () => catalog.snapshot.providers,
      probe: (provider, key, timeoutMs) => probeKey(provider, key, { dial: request => outbound.toProvider(request), timeoutMs }),
    }),
    outbox: { isSent: config.SMTP_URL !== null, outbox: limit => mail.outbox(limit) },
    operatorWebhooks: new OperatorWebhooks({ db, clock }),
  }
}
