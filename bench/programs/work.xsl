<?xml version="1.0"?>
<!-- A list by key, each with what belongs to it, sorted. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="xml" indent="yes"/>
  <xsl:key name="kind" match="record" use="@kind"/>
  <xsl:template match="/records">
    <kinds>
      <xsl:for-each select="record[generate-id() = generate-id(key('kind', @kind)[1])]">
        <xsl:sort select="@kind"/>
        <kind name="{@kind}" number="{count(key('kind', @kind))}">
          <xsl:apply-templates select="key('kind', @kind)"><xsl:sort select="name"/></xsl:apply-templates>
        </kind>
      </xsl:for-each>
    </kinds>
  </xsl:template>
  <xsl:template match="record">
    <xsl:element name="{name}"><xsl:attribute name="of"><xsl:value-of select="concat(@id, '-', count(item))"/></xsl:attribute>
      <xsl:for-each select="item[@count &gt; 3]"><price><xsl:value-of select="@price * @count"/></price></xsl:for-each>
    </xsl:element>
  </xsl:template>
</xsl:stylesheet>
