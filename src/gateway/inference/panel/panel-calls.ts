import type { AdmissionRequest, Limits, Permit } from '../../limits/engine/admission.ts'
import type { UsageEvent } from '../../usage/events/record.ts'
import type { PanelPart } from '../deps.ts'

/** Makes the calls of a panel one call of their run. The first one that is admitted takes the unit, and the first one that is dialed is the call. */
export class PanelCalls implements PanelPart {
  readonly #limits: Pick<Limits<UsageEvent>, 'admit'>
  #isDialed = false
  #isAdmitted = false
  #first: Promise<void> | null = null

  constructor(limits: Pick<Limits<UsageEvent>, 'admit'>) {
    this.#limits = limits
  }

  isPart(): boolean {
    const wasDialed = this.#isDialed
    this.#isDialed = true
    return wasDialed
  }

  /** Admits a call. Calls of a run with caps wait until one of them has the unit. Rejects as `Limits.admit` does. */
  async admit(request: AdmissionRequest): Promise<Permit<UsageEvent>> {
    if ((request.run ?? null) === null) return this.#limits.admit(request)
    while (!this.#isAdmitted) {
      if (this.#first === null) return this.#admitFirst(request)
      await this.#first
    }
    return this.#limits.admit({ ...request, isRunPart: true })
  }

  #admitFirst(request: AdmissionRequest): Promise<Permit<UsageEvent>> {
    const admitted = (async () => this.#limits.admit(request))()
    this.#first = admitted.then(
      () => {
        this.#isAdmitted = true
      },
      () => {
        this.#first = null
      },
    )
    return admitted
  }
}
