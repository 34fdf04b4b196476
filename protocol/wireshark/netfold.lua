-- SPDX-FileCopyrightText: 2026 The netfold authors
-- SPDX-License-Identifier: Apache-2.0

-- Wireshark dissector for netfold (docs/reference/protocol.md, section 2). Use it once with
--   wireshark -X lua_script:protocol/wireshark/netfold.lua
-- or copy it into the personal Lua plugins folder (Help > About Wireshark > Folders).
-- Of RoCE (docs/reference/roce.md) it shows the lanes of SENDs with 64 or 256 lanes, behind the headers that Wireshark knows.

local netfold = Proto("netfold", "netfold gradient aggregation")

-- wire: generated from protocol/wire.yaml by `make wire`
local PORTS = "61440-61695"
local VERSION = 1
local HEADER = 16
local TARGETED = 0x8000
local TARGET_ALL_BUT = 0x4000
local TARGET_NONE = 0x3fff
local KINDS = { [0] = "GRADIENT", [1] = "RESULT", [2] = "READ", [3] = "RESET" }
-- name, label, offset, bytes, bits of the mask (0: all)
local FIELDS = {
    { "version", "Version", 0, 1, 0xf0 },
    { "kind", "Kind", 0, 1, 0xf },
    { "flags", "Flags", 1, 1, 0x0 },
    { "tree", "Tree", 2, 2, 0x0 },
    { "epoch", "Epoch", 4, 4, 0xfff00000 },
    { "round", "Round", 4, 4, 0xfffff },
    { "slot", "Slot", 8, 2, 0x0 },
    { "child", "Child", 10, 2, 0x0 },
    { "exponent", "Exponent", 12, 1, 0x0 },
    { "reserved", "Reserved", 13, 1, 0x0 },
    { "lanes", "Lanes or target", 14, 2, 0x0 },
}
local FLAGS = {
    { "overflow", "lanes may be saturated", 0x80 },
    { "congestion", "ECN mark on the path", 0x40 },
    { "quorum", "tree with a quorum", 0x20 },
    { "seal", "seal requested (up), contribution late (down)", 0x10 },
    { "slot_reused", "sum no longer available", 0x08 },
    { "floats", "lanes are float32", 0x04 },
    { "data", "a contribution has lanes", 0x02 },
}
-- wire: end

local SENDS = { [0] = "SEND first", [1] = "SEND middle", [2] = "SEND last", [4] = "SEND only" }

local f = {
    roce       = ProtoField.bool("netfold.roce", "BTH copied", 8, nil, 0x80),
    ack        = ProtoField.bool("netfold.roce.ack_request", "Ack request", 8, nil, 0x40),
    solicited  = ProtoField.bool("netfold.roce.solicited", "Solicited event", 8, nil, 0x20),
    opcode     = ProtoField.uint8("netfold.roce.opcode", "Opcode", base.DEC, SENDS, 0x1F),
    count      = ProtoField.uint8("netfold.count", "Contributions", base.DEC, nil, 0x7F),
    lane       = ProtoField.int32("netfold.lane", "Lane"),
    float_lane = ProtoField.float("netfold.float_lane", "Lane"),
    owner      = ProtoField.uint16("netfold.owner", "Owner", base.DEC, { [TARGET_NONE] = "none" }, TARGET_NONE),
    all_but    = ProtoField.bool("netfold.all_but", "All but the owner want lanes", 16, nil, TARGET_ALL_BUT),
}
for _, field in ipairs(FIELDS) do
    local name, label, _, bytes, mask = table.unpack(field)
    local new = ({ ProtoField.uint8, ProtoField.uint16, nil, ProtoField.uint32 })[bytes]
    f[name] = new("netfold." .. name, label, base.DEC, name == "kind" and KINDS or nil, mask > 0 and mask or nil)
end
for _, flag in ipairs(FLAGS) do
    f[flag[1]] = ProtoField.bool("netfold." .. flag[1], flag[2], 8, nil, flag[3])
end
netfold.fields = f

local e = {
    version = ProtoExpert.new("netfold.version.wrong", "This is not version 1", expert.group.MALFORMED, expert.severity.ERROR),
    kind    = ProtoExpert.new("netfold.kind.unknown", "No such kind", expert.group.MALFORMED, expert.severity.ERROR),
    length  = ProtoExpert.new("netfold.lanes.wrong", "The length is not 16 + 4 * lanes, or of a targeted packet not what D says", expert.group.MALFORMED, expert.severity.ERROR),
    cut     = ProtoExpert.new("netfold.cut", "The header is cut short", expert.group.MALFORMED, expert.severity.ERROR),
    saturated = ProtoExpert.new("netfold.overflow.set", "The lanes are not a sum", expert.group.SEQUENCE, expert.severity.NOTE),
    mark    = ProtoExpert.new("netfold.congestion.set", "A queue on the path was above its marking threshold", expert.group.SEQUENCE, expert.severity.NOTE),
}
netfold.experts = { e.version, e.kind, e.length, e.cut, e.saturated, e.mark }

local function is_targeted(buffer) return buffer(14, 2):uint() >= TARGETED end

local function header(buffer, tree)
    for _, field in ipairs(FIELDS) do
        local name, _, offset, bytes = table.unpack(field)
        if name == "flags" then
            for _, flag in ipairs(FLAGS) do tree:add(f[flag[1]], buffer(offset, 1)) end
        elseif name == "lanes" and is_targeted(buffer) then
            for _, part in ipairs({ f.owner, f.all_but }) do tree:add(part, buffer(offset, 2)) end
        elseif name ~= "reserved" then
            tree:add(f[name], buffer(offset, bytes))
        elseif buffer(offset, 1):uint() >= 0x80 then
            for _, bits in ipairs({ f.roce, f.ack, f.solicited, f.opcode }) do tree:add(bits, buffer(offset, 1)) end
        else
            tree:add(f.count, buffer(offset, 1))
        end
    end
end

local function lanes(buffer, tree, at, count, field)
    local list = tree:add(buffer(at, 4 * count), string.format("Lanes (%d)", count))
    for i = 0, count - 1 do
        list:add(field, buffer(at + 4 * i, 4)):prepend_text(string.format("[%d] ", i))
    end
end

-- A targeted contribution is whole if D is set; a result with D may be cut.
local function has_right_length(buffer)
    if not is_targeted(buffer) then return buffer:len() == HEADER + 4 * buffer(14, 2):uint() end
    local has_data, is_whole = math.floor(buffer(1, 1):uint() / 2) % 2 == 1, buffer:len() > HEADER
    return has_data == is_whole or (has_data and buffer(0, 1):uint() % 16 == 1)
end

local function add_warnings(buffer, tree)
    local first, flags = buffer(0, 1):uint(), buffer(1, 1):uint()
    if math.floor(first / 16) ~= VERSION then tree:add_proto_expert_info(e.version) end
    if KINDS[first % 16] == nil then tree:add_proto_expert_info(e.kind) end
    if not has_right_length(buffer) then tree:add_proto_expert_info(e.length) end
    if flags >= 0x80 then tree:add_proto_expert_info(e.saturated) end
    if flags % 0x80 >= 0x40 then tree:add_proto_expert_info(e.mark) end
end

function netfold.dissector(buffer, pinfo, root)
    pinfo.cols.protocol = "netfold"
    local tree = root:add(netfold, buffer())
    if buffer:len() < HEADER then
        tree:add_proto_expert_info(e.cut)
        pinfo.cols.info = "header cut short"
        return
    end
    header(buffer, tree)
    local available = math.floor((buffer:len() - HEADER) / 4)
    local field = buffer(1, 1):uint() % 8 >= 4 and f.float_lane or f.lane
    local count = is_targeted(buffer) and available or math.min(buffer(14, 2):uint(), available)
    if count > 0 then lanes(buffer, tree, HEADER, count, field) end
    add_warnings(buffer, tree)
    local tag = buffer(4, 4):uint()
    pinfo.cols.info = string.format("%s tree=%d epoch=%d round=%d slot=%d child=%d",
        KINDS[buffer(0, 1):uint() % 16] or "unknown kind", buffer(2, 2):uint(),
        math.floor(tag / 0x100000), tag % 0x100000, buffer(8, 2):uint(), buffer(10, 2):uint())
end

DissectorTable.get("udp.port"):add(PORTS, netfold)

-- The payload of a SEND that has the size of a packet's lanes.
netfold:register_heuristic("infiniband.payload", function(buffer, pinfo, root)
    if buffer:len() ~= 4 * 64 and buffer:len() ~= 4 * 256 then return false end
    lanes(buffer, root:add(netfold, buffer(), "netfold lanes in RoCE"), 0, buffer:len() / 4, f.lane)
    return true
end)
