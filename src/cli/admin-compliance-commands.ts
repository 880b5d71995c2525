/** The operator's part in attestations, run inside the process that owns the database. */
import { z } from 'zod'
import type { App } from '../app.ts'
import { argsOf } from './admin-args.ts'
import type { AdminCommand } from './admin-socket.ts'
import { asOperator } from './operator-act.ts'

const checkArgs = z.object({ key_id: z.string().max(200), signature: z.string().max(200), payload: z.string() })

/** What a command about attestations answers; null when the command is none of these. */
export function complianceCommand(app: App, command: AdminCommand): Promise<object> | null {
  switch (command.name) {
    case 'rotate-attestation-key':
      return rotate(app)
    case 'check-attestation':
      return check(app, argsOf(checkArgs, command))
    default:
      return null
  }
}

function rotate(app: App): Promise<object> {
  return asOperator(app.audit, { act: 'rotateAttestationKey', orgId: null, target: null }, async () => {
    const { keyId, hmacKeyId } = await app.attestations.keys.rotate()
    return { rotated: true, ed25519_key_id: keyId, hmac_key_id: hmacKeyId }
  })
}

async function check(app: App, { key_id: keyId, signature, payload }: z.output<typeof checkArgs>): Promise<object> {
  const isOurs = await app.attestations.keys.checkHmac(keyId, signature, Buffer.from(payload))
  if (isOurs === null) throw new Error(`not valid: this gateway never had an HMAC secret of the id ${keyId}`)
  if (!isOurs) throw new Error('not valid: the HMAC does not belong to this payload')
  return { valid: true, alg: 'HMAC-SHA256', key_id: keyId }
}
