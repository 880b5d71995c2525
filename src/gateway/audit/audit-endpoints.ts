export const auditEndpoints = {}
