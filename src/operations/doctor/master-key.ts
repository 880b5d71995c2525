import type { SigningKeys } from '../../agents/tokens/signing-keys.ts'
import { counted } from '../../platform/observe/terminal/counted.ts'
import type { MasterKeys } from '../master-keys.ts'
import type { Finding } from './finding.ts'

/** Checks whether the master key opens the sealed values of the database, and whether a change of the key is complete. */
export async function checkMasterKey({
  signingKeys,
  masterKeys,
}: {
  readonly signingKeys: Pick<SigningKeys, 'isOpened'>
  readonly masterKeys: Pick<MasterKeys, 'status'>
}): Promise<Finding[]> {
  const { current, others, inUse } = await masterKeys.status()
  const findings: Finding[] = [
    (await signingKeys.isOpened())
      ? { what: 'master key', state: 'ok', detail: `opens what is sealed in the database (its id is ${current})` }
      : {
          what: 'master key',
          state: 'wrong',
          detail:
            'does not open the signing key of agent tokens: it is another one than the database was sealed with. Put the old one back (MASTER_KEY, or master.key in DATA_DIR); until then no token can be minted, and saved keys and kept content do not open.',
        },
  ]
  for (const { keyId, values, state, where } of inUse) {
    if (state === 'other')
      findings.push({
        what: 'change of the master key',
        state: 'warning',
        detail: `is not finished: ${counted(values, 'value is', 'values are')} sealed under the other key ${keyId} (${where.join(', ')}). When every process has the new key as its MASTER_KEY, run brigade master-key reseal.`,
      })
    if (state === 'unknown')
      findings.push({
        what: 'sealed values',
        // This is only a warning, because a lost key can leave values that need no action, such as old signing keys.
        state: 'warning',
        detail: `${counted(values, 'value is', 'values are')} sealed under the master key ${keyId}, which this process does not have (${where.join(', ')}). Set it as MASTER_KEY_OTHER and run brigade master-key reseal; if it is lost, save their contents again.`,
      })
  }
  if (others.length > 0 && !inUse.some(({ state }) => state === 'other'))
    findings.push({
      what: 'change of the master key',
      state: 'ok',
      detail: `no value is sealed under the other key ${others.join(', ')} any more. Forget it when people may sign in again: take MASTER_KEY_OTHER away, or run brigade master-key forget`,
    })
  return findings
}
